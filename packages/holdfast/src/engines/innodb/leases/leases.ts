import type { Statement } from '../../../core/driver.ts'
import type { HeldLeaseName, LeaseRequest } from '../../../leases/engine.ts'
import { nowUs, span, spanOf } from '../sql/clock.ts'
import type { LeaseTexts } from './lease-tables.ts'

/** Statements about leases; `id` is how the row of one is called. */

/** Of the holder's row, as plain numbers and texts. */
const standing = `h.owner AS owner, CAST(h.token AS CHAR) AS token,
  CAST(h.expires - ${nowUs} AS CHAR) AS leftUs, CAST(h.expires + h.delay - ${nowUs} AS CHAR) AS freeUs`

/** What is known of a lease, without any lock. */
export function lookAtLease({ lease, holder }: LeaseTexts, id: string): Statement {
  const text = `SELECT ${standing}, h.note AS note, CAST(h.acquired AS CHAR) AS acquired,
  CAST(h.expires AS CHAR) AS expires
FROM ${lease} l JOIN ${holder} h ON h.id = l.id WHERE l.id = ?`
  return { text, values: [id] }
}

/** A row that nobody has held yet. @throws 1062 if it is there */
export function newHolder({ holder }: LeaseTexts, id: string): Statement {
  const text = `INSERT INTO ${holder} (id, token, owner, ttl, delay, acquired, expires)
VALUES (?, 0, NULL, 0, 0, 0, 0)`
  return { text, values: [id] }
}

export function newLease(
  { lease }: LeaseTexts,
  id: string,
  { scope, name }: Pick<LeaseRequest, 'scope' | 'name'>,
): Statement {
  const text = `INSERT INTO ${lease} (id, scope, name, token) VALUES (?, ?, ?, 0)`
  return { text, values: [id, scope, name] }
}

/** What a take-over needs: it is not there while a guard, or another take-over, has it. */
export function lockLease({ lease }: LeaseTexts, id: string): Statement {
  const text = `SELECT CAST(token AS CHAR) AS token FROM ${lease} WHERE id = ? FOR UPDATE SKIP LOCKED`
  return { text, values: [id] }
}

/** And the holder's row, which is not there while it is renewed, or released in somebody's transaction. */
export function lockHolder({ holder }: LeaseTexts, id: string): Statement {
  const text = `SELECT ${standing} FROM ${holder} h WHERE h.id = ? FOR UPDATE SKIP LOCKED`
  return { text, values: [id] }
}

/**
 * Counts up to the next token of a bucket: more than all before it and than this one, and at least the microseconds since
 * 1970, so that where the counter went back, on a replica that lagged or in a restored backup, the clock is past them.
 */
export function countToken({ counter }: LeaseTexts, bucket: number, above: string): Statement {
  const least = `GREATEST(${span} + 1, ${nowUs})`
  const text = `INSERT INTO ${counter} (bucket, token) VALUES (?, ${least})
ON DUPLICATE KEY UPDATE token = GREATEST(token + 1, ${least})`
  return { text, values: [bucket, above, above] }
}

export function lastToken({ counter }: LeaseTexts, bucket: number): Statement {
  const text = `SELECT CAST(token AS CHAR) AS token FROM ${counter} WHERE bucket = ? FOR UPDATE`
  return { text, values: [bucket] }
}

export function giveToken({ lease }: LeaseTexts, id: string, token: string): Statement {
  return { text: `UPDATE ${lease} SET token = ? WHERE id = ?`, values: [token, id] }
}

/** Both rows are locked. The moment of acquiring stays if the token does. */
export function hold(
  { holder }: LeaseTexts,
  id: string,
  { owner, ttlMs, delayMs, note }: LeaseRequest,
  token: string,
): Statement {
  const text = `UPDATE ${holder} SET owner = ?, ttl = ${span}, delay = ${span}, note = ?,
  acquired = IF(token = ${span}, acquired, ${nowUs}), token = ${span}, expires = ${nowUs} + ${span}
WHERE id = ?`
  const [ttl, delay] = [spanOf(ttlMs), spanOf(delayMs)]
  return { text, values: [owner, ttl, delay, note ?? null, token, token, ttl, id] }
}

const isTheirs = `id = ? AND token = ${span} AND owner = ?`

/** Changes a row only if it is held by who says so. */
export function extendLease(
  { holder }: LeaseTexts,
  id: string,
  { token, owner }: HeldLeaseName,
): Statement {
  const text = `UPDATE ${holder} SET expires = ${nowUs} + ttl WHERE ${isTheirs} AND expires > ${nowUs}`
  return { text, values: [id, String(token), owner] }
}

export function endLease(
  { holder }: LeaseTexts,
  id: string,
  { token, owner }: HeldLeaseName,
  which: 'held' | 'expired',
): Statement {
  const than = which === 'held' ? '>' : '<='
  const text = `UPDATE ${holder} SET owner = NULL, expires = ${nowUs} WHERE ${isTheirs} AND expires ${than} ${nowUs}`
  return { text, values: [id, String(token), owner] }
}

/**
 * Shares the row of the token until the transaction ends, and reads who holds the lease without any lock on that. The
 * sub-select has to be correlated: it is read after the wait.
 */
export function shareLease({ lease, holder }: LeaseTexts, id: string): Statement {
  const seen = `CONCAT_WS(',', h.token, h.owner IS NOT NULL, h.expires > ${nowUs})`
  const text = `SELECT CAST(l.token AS CHAR) AS token,
  (SELECT ${seen} FROM ${holder} h WHERE h.id = l.id) AS seen
FROM ${lease} l WHERE l.id = ? LOCK IN SHARE MODE`
  return { text, values: [id] }
}

/** Keeps the holder's row as it is until the transaction ends, renewals included. */
export function shareHolder({ holder }: LeaseTexts, id: string): Statement {
  const text = `SELECT ${standing} FROM ${holder} h WHERE h.id = ? LOCK IN SHARE MODE`
  return { text, values: [id] }
}

/** Leases that nobody has held for so long, but for those that somebody is about to take. */
export function idleHolders({ holder }: LeaseTexts, idleMs: number, most: number): Statement {
  const before = `${nowUs} - ${span}`
  const text = `SELECT id FROM ${holder}
WHERE expires < ${before} AND expires + delay < ${before} AND acquired < ${before}
LIMIT ${Math.trunc(most)} FOR UPDATE SKIP LOCKED`
  const idle = spanOf(idleMs)
  return { text, values: [idle, idle, idle] }
}

/** Of one lease, both rows. Of several at once the server may look at all there are, and wait for those of others. */
export function forgetLease({ lease, holder }: LeaseTexts, id: string): Statement {
  const text = `DELETE l, h FROM ${lease} l JOIN ${holder} h ON h.id = l.id WHERE l.id = ?`
  return { text, values: [id] }
}
