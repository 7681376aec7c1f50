import type { Statement } from '../../../core/driver.ts'
import type { OnceNames } from '../../../once/engine.ts'
import { nowUs, span, spanOf } from '../sql/clock.ts'
import { limited } from '../sql/text.ts'
import type { OnceTexts } from './once-table.ts'

/** Statements about keys of `once`; `row` is how the row of one is called. */

/** How long a row is waited for: no longer than this, or not at all. */
export type Patience = { readonly limitMs: number | undefined } | 'nowait'

/**
 * Locks the row of a key whether or not it is there, and nothing else, also at REPEATABLE READ, where a look for a row
 * that is missing would lock a gap. How long it waits, MariaDB is told here.
 */
export function takeRow(
  { once }: OnceTexts,
  row: string,
  { key, scope }: OnceNames,
  stamp: string,
  patience: Patience,
): Statement {
  const before =
    patience === 'nowait'
      ? '/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ '
      : limited(patience.limitMs).before
  const text = `${before}INSERT INTO ${once} (name, scope, once_key, seq, stamp, conn, since, done, expires)
VALUES (?, ?, ?, 1, ${span}, CONNECTION_ID(), ${nowUs}, 0, ${nowUs})
ON DUPLICATE KEY UPDATE seq = seq`
  return { text, values: [row, scope, key, stamp] }
}

/** Locks and reads it; on MySQL this is what waits. */
export function readRow({ once }: OnceTexts, row: string, patience: Patience): Statement {
  const { before, hint } = limited(patience === 'nowait' ? undefined : patience.limitMs)
  const how = patience === 'nowait' ? 'FOR UPDATE NOWAIT' : 'FOR UPDATE'
  const text = `${before}SELECT ${hint}CAST(stamp AS CHAR) AS stamp, fingerprint, result,
  IF(done = 1 AND expires > ${nowUs}, 1, 0) AS isDone
FROM ${once} WHERE name = ? ${how}`
  return { text, values: [row] }
}

/** Signs a row that was there before. */
export function signRow({ once }: OnceTexts, row: string, stamp: string): Statement {
  const text = `UPDATE ${once} SET seq = seq + 1, stamp = ${span}, conn = CONNECTION_ID(), since = ${nowUs},
  done = 0, expires = ${nowUs} WHERE name = ?`
  return { text, values: [stamp, row] }
}

/** Changes nothing unless it is still the one that was signed. */
export function storeRow(
  { once }: OnceTexts,
  row: string,
  stamp: string,
  { fingerprint }: OnceNames,
  result: string | undefined,
  keepMs: number,
): Statement {
  const text = `UPDATE ${once} SET done = 1, fingerprint = ?, result = ?, expires = ${nowUs} + ${span}
WHERE name = ? AND stamp = ${span}`
  return { text, values: [fingerprint ?? null, result ?? null, spanOf(keepMs), row, stamp] }
}

/** Rows whose time is up, but for those that somebody has; as many as that. */
export function pastRows({ once }: OnceTexts, most: number): Statement {
  const text = `SELECT name FROM ${once} FORCE INDEX (by_expires) WHERE expires <= ${nowUs}
LIMIT ${Math.trunc(most)} FOR UPDATE SKIP LOCKED`
  return { text, values: [] }
}

export function forgetRow({ once }: OnceTexts, row: string): Statement {
  return { text: `DELETE FROM ${once} WHERE name = ?`, values: [row] }
}
