import type { Statement } from '../../../core/driver.ts'
import type { OnceNames } from '../../../once/engine.ts'
import { nowUs, spanOf } from '../sql/clock.ts'
import { plain } from '../tx/transaction.ts'

/** Statements about keys of `once`. */

/**
 * A row is what is remembered of a key. One that is there and not `done` says nothing: its work was undone, and the row was
 * not.
 */
export const onceTables: readonly Statement[] = [
  plain(`CREATE TABLE IF NOT EXISTS holdfast_once (
  scope TEXT NOT NULL,
  once_key TEXT NOT NULL,
  -- Which call has written it last.
  stamp TEXT NOT NULL,
  done INTEGER NOT NULL,
  -- SHA-256 of what came with the key, if the caller compares it.
  fingerprint TEXT,
  result TEXT,
  expires INTEGER NOT NULL,
  PRIMARY KEY (scope, once_key)
) STRICT`),
  plain('CREATE INDEX IF NOT EXISTS holdfast_once_expires ON holdfast_once (expires)'),
]

/** Takes the right to write in a transaction that is open. */
export const touchOnce: Statement = plain('UPDATE main.holdfast_once SET done = done WHERE 0')

const isKey = 'scope = ? AND once_key = ?'

/** What is known of a key, if its time is not up. */
export function readKey({ scope, key }: OnceNames): Statement {
  const text = `SELECT fingerprint, result FROM main.holdfast_once WHERE ${isKey} AND done = 1 AND expires > ${nowUs}`
  return { text, values: [scope, key] }
}

/** Makes the row of a key this call's. */
export function signKey({ scope, key }: OnceNames, stamp: string): Statement {
  const text = `INSERT INTO main.holdfast_once (scope, once_key, stamp, done, expires) VALUES (?, ?, ?, 0, ${nowUs})
ON CONFLICT (scope, once_key) DO UPDATE SET stamp = excluded.stamp, done = 0, fingerprint = NULL, result = NULL,
  expires = excluded.expires`
  return { text, values: [scope, key, stamp] }
}

/** Changes nothing unless it is still the one that was signed. */
export function storeKey(
  { scope, key, fingerprint }: OnceNames,
  stamp: string,
  result: string | undefined,
  keepMs: number,
): Statement {
  const text = `UPDATE main.holdfast_once SET done = 1, fingerprint = ?, result = ?, expires = ${nowUs} + ?
WHERE ${isKey} AND stamp = ?`
  return {
    text,
    values: [fingerprint ?? null, result ?? null, spanOf(keepMs), scope, key, stamp],
  }
}

/** Deletes rows whose time is up, as many as that. */
export function forgetKeys(most: number): Statement {
  const text = `DELETE FROM main.holdfast_once WHERE rowid IN (
  SELECT rowid FROM main.holdfast_once WHERE expires <= ${nowUs} ORDER BY expires LIMIT ?)`
  return { text, values: [most] }
}
