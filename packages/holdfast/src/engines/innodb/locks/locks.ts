import type { Statement } from '../../../core/driver.ts'
import { limited, Texts } from '../sql/text.ts'

/** Statements about rows of `holdfast_lock`; `table` is its name, `rows` are those of locks, in order. */

/** By the clock when it is said, and not when the statement began to wait. */
const now = 'ROUND(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000)'

const writings = /* @__PURE__ */ new Texts()

/**
 * Makes these rows ours, whether or not they are there: X locks on them and on nothing else, one after the other. Waits
 * for who has them; a limit counts on MariaDB only.
 */
export function writeLocks(
  table: string,
  rows: readonly string[],
  stamp: string,
  limitMs?: number,
): Statement {
  const { before } = limited(limitMs)
  const text = writings.of(`${rows.length} ${before}`, table, () => {
    const rowText = `(?, 1, ?, CONNECTION_ID(), ${now})`
    return `${before}INSERT INTO ${table} (name, seq, stamp, conn, since)
VALUES ${rows.map(() => rowText).join(', ')}
ON DUPLICATE KEY UPDATE seq = seq + 1, stamp = ?, conn = CONNECTION_ID(), since = ${now}`
  })
  return { text, values: [...rows.flatMap((row) => [row, stamp]), stamp] }
}

/**
 * The same for rows that may not be there, and changes none that is: what its snapshot has of a row still tells whether
 * it is older than the last holder.
 */
export function createLocks(table: string, rows: readonly string[], limitMs?: number): Statement {
  const text = `${limited(limitMs).before}INSERT INTO ${table} (name, seq, stamp, conn, since)
VALUES ${rows.map(() => '(?, 0, 0, 0, 0)').join(', ')}
ON DUPLICATE KEY UPDATE seq = seq`
  return { text, values: rows }
}

/**
 * Which writing of a row it is that one sees. The number alone does not say it: a row that was deleted, because nobody had
 * locked it for long, begins anew.
 */
function writingOf(row: string): string {
  return `CONCAT(${row}.seq, '.', ${row}.stamp)`
}

/** What is done about a row that somebody else has. */
export type Patience = 'wait' | 'nowait' | 'skip'

const clause: Readonly<Record<Patience, string>> = {
  wait: 'FOR UPDATE',
  nowait: 'FOR UPDATE NOWAIT',
  skip: 'FOR UPDATE SKIP LOCKED',
}

/**
 * Locks rows, in this order, and gives those that it has locked. Of one row also what the transaction's snapshot has of
 * it: the sub-select has to be correlated, or MariaDB reads it before it waits, and the look itself opens the old view.
 * Of several that would open it before the second is waited for.
 */
export function lockRows(
  table: string,
  rows: readonly string[],
  patience: Patience,
  limitMs: number | undefined,
): Statement {
  const { before, hint } = limited(limitMs)
  const columns = `l.name AS name, CAST(l.seq AS CHAR) AS seq, CAST(l.stamp AS CHAR) AS stamp, ${writingOf('l')} AS writing`
  const one = (more: string, hinted: string): string =>
    `SELECT ${hinted}${columns}${more} FROM ${table} l WHERE l.name = ? ${clause[patience]}`
  if (rows.length === 1) {
    const snap = `, (SELECT ${writingOf('s')} FROM ${table} s WHERE s.name = l.name) AS snap`
    return { text: before + one(snap, hint), values: rows }
  }
  // One by one, because the order of locking is that of the access path, whatever ORDER BY says.
  const all = rows.map((_, place) => `(${one('', place === 0 ? hint : '')})`)
  return { text: before + all.join(' UNION ALL '), values: rows }
}

/** What the transaction's snapshot has of rows that are locked by now. */
export function snapshotOf(table: string, rows: readonly string[]): Statement {
  const text = `SELECT name, ${writingOf('s')} AS writing FROM ${table} s WHERE name IN (${rows.map(() => '?').join(', ')})`
  return { text, values: rows }
}

/** Who has written these rows last; with `uncommitted` also who has not committed yet. */
export function lastHolders(
  table: string,
  rows: readonly string[],
  uncommitted: boolean,
): Statement {
  const text = `SELECT name, CAST(seq AS CHAR) AS seq, conn, (${now} - since) / 1000 AS age
FROM ${table} WHERE name IN (${rows.map(() => '?').join(', ')})`
  return { text, values: rows, uncommitted }
}
