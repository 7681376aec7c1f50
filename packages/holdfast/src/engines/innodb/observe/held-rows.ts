import type { Row, Statement } from '../../../core/driver.ts'
import type { HeldRow } from './picture.ts'
import { lookPrefix } from './rows-told.ts'

/**
 * So many rows of the table are looked at: nothing finds those of a connection. Locks that are waited for need no look. The
 * doctor says it of tables with more.
 */
const mostRows = 100_000

/**
 * Rows that these connections were the last to write, also if they have not committed. One without a name says that there are
 * rows which were not looked at.
 */
export function writtenRows(
  table: string,
  pids: readonly number[],
  statementTimeoutMs: number,
): Statement {
  const { before, hint } = lookPrefix(statementTimeoutMs)
  const numbers = pids.map((pid) => Math.trunc(pid)).join(', ')
  return {
    text: `${before}SELECT ${hint}l.name AS name, CAST(l.seq AS CHAR) AS seq, CAST(l.conn AS CHAR) AS conn,
  CAST((ROUND(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) - l.since) / 1000 AS CHAR) AS age
FROM (SELECT name, seq, conn, since FROM ${table} LIMIT ${mostRows}) l WHERE l.conn IN (${numbers})
UNION ALL SELECT NULL, NULL, NULL, NULL FROM (SELECT name FROM ${table} LIMIT 1 OFFSET ${mostRows}) more`,
    values: [],
    uncommitted: true,
  }
}

/** The same rows as they were committed. */
export function committedRows(
  table: string,
  rows: readonly string[],
  statementTimeoutMs: number,
): Statement {
  const { before, hint } = lookPrefix(statementTimeoutMs)
  return {
    text: `${before}SELECT ${hint}name AS name, CAST(seq AS CHAR) AS seq FROM ${table}
WHERE name IN (${rows.map(() => '?').join(', ')})`,
    values: rows,
  }
}

/** What `writtenRows` is answered with. */
export function heldRows(rows: readonly Row[]): {
  readonly written: readonly (HeldRow & { readonly seq: string })[]
  readonly capped: boolean
} {
  const named = rows.filter(({ name }) => name !== null)
  const written = named.map((row) => ({
    row: String(row['name']),
    seq: String(row['seq']),
    pid: Number(row['conn']),
    ageMs: Math.max(0, Number(row['age'])),
  }))
  return { written, capped: named.length < rows.length }
}
