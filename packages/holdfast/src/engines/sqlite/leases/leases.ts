import type { Statement } from '../../../core/driver.ts'
import type { HeldLeaseName, LeaseName, LeaseRequest, LeaseToken } from '../../../leases/engine.ts'
import { nowUs, spanOf } from '../sql/clock.ts'
import { plain } from '../tx/transaction.ts'

/** Statements about leases. Whoever writes has the whole file, so that one row says all there is to a lease. */

export const leaseTables: readonly Statement[] = [
  plain(`CREATE TABLE IF NOT EXISTS holdfast_lease (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  token INTEGER NOT NULL,
  -- Random, made by whoever acquires it; null once it was released.
  owner TEXT,
  ttl INTEGER NOT NULL,
  delay INTEGER NOT NULL,
  acquired INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  note TEXT,
  PRIMARY KEY (scope, name)
) STRICT`),
  // The last token that was given: rows of leases may be deleted, this one never.
  plain(`CREATE TABLE IF NOT EXISTS holdfast_lease_counter (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  token INTEGER NOT NULL
) STRICT`),
]

/** Takes the right to write in a transaction that is open. */
export const touchLeases: Statement = plain('UPDATE main.holdfast_lease SET token = token WHERE 0')

const isNamed = 'scope = ? AND name = ?'

/** What is known of a lease, as plain numbers and texts. */
export function lookAtLease({ scope, name }: LeaseName): Statement {
  const text = `SELECT owner, CAST(token AS TEXT) AS token, note, acquired, expires,
  expires - ${nowUs} AS leftUs, expires + delay - ${nowUs} AS freeUs
FROM main.holdfast_lease WHERE ${isNamed}`
  return { text, values: [scope, name] }
}

/**
 * Counts up to the next token: more than all before it and than this one, and at least the microseconds since 1970, so that
 * where the counter went back, in a restored backup, the clock is past them.
 */
export function countToken(above: string): Statement {
  const text = `INSERT INTO main.holdfast_lease_counter (one, token) VALUES (1, MAX(CAST(? AS INTEGER) + 1, ${nowUs}))
ON CONFLICT (one) DO UPDATE SET token = MAX(holdfast_lease_counter.token + 1, excluded.token)
RETURNING CAST(token AS TEXT) AS token`
  return { text, values: [above] }
}

/** The moment of acquiring stays if the token does. */
export function hold(
  { scope, name, owner, ttlMs, delayMs, note }: LeaseRequest,
  token: string,
): Statement {
  const text = `INSERT INTO main.holdfast_lease AS l (scope, name, token, owner, ttl, delay, acquired, expires, note)
VALUES (?, ?, CAST(? AS INTEGER), ?, ?, ?, ${nowUs}, ${nowUs} + ?, ?)
ON CONFLICT (scope, name) DO UPDATE SET acquired = IIF(l.token = excluded.token, l.acquired, excluded.acquired),
  token = excluded.token, owner = excluded.owner, ttl = excluded.ttl, delay = excluded.delay,
  expires = excluded.expires, note = excluded.note`
  const [ttl, delay] = [spanOf(ttlMs), spanOf(delayMs)]
  return { text, values: [scope, name, token, owner, ttl, delay, ttl, note ?? null] }
}

const isTheirs = `${isNamed} AND token = CAST(? AS INTEGER) AND owner = ?`

function theirs({ scope, name, token, owner }: HeldLeaseName): readonly string[] {
  return [scope, name, String(token), owner]
}

/** Changes a row only if it is held by who says so. */
export function extendLease(held: HeldLeaseName): Statement {
  const text = `UPDATE main.holdfast_lease SET expires = ${nowUs} + ttl WHERE ${isTheirs} AND expires > ${nowUs}`
  return { text, values: theirs(held) }
}

export function endLease(held: HeldLeaseName, which: 'held' | 'expired'): Statement {
  const than = which === 'held' ? '>' : '<='
  const text = `UPDATE main.holdfast_lease SET owner = NULL, expires = ${nowUs} WHERE ${isTheirs} AND expires ${than} ${nowUs}`
  return { text, values: theirs(held) }
}

/** Whether a token fits; nobody else may write by then. */
export function checkLease({ scope, name, token }: LeaseToken): Statement {
  const text = `SELECT token = CAST(? AS INTEGER) AS fits, owner IS NOT NULL AS isHeld, expires > ${nowUs} AS isLeft
FROM main.holdfast_lease WHERE ${isNamed}`
  return { text, values: [String(token), scope, name] }
}

/** Deletes leases that nobody has held for so long, as many as that. */
export function forgetLeases(idleMs: number, most: number): Statement {
  const before = `${nowUs} - ?`
  const text = `DELETE FROM main.holdfast_lease WHERE rowid IN (
  SELECT rowid FROM main.holdfast_lease
  WHERE expires < ${before} AND expires + delay < ${before} AND acquired < ${before} LIMIT ?)`
  const idle = spanOf(idleMs)
  return { text, values: [idle, idle, idle, most] }
}
