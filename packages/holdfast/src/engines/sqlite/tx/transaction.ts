import type { Row, Statement } from '../../../core/driver.ts'

/** Takes the right to write with it, so that nothing the transaction reads can be changed by others before it writes. */
export const beginText = 'BEGIN IMMEDIATE'
export const commitText = 'COMMIT'
export const rollbackText = 'ROLLBACK'

/** A wait inside of SQLite stops the whole process, and with it whoever holds what is waited for. */
export const noTimeout = 'PRAGMA busy_timeout = 0'
export const timeout: {
  readonly read: Statement
  set(ms: number): string
} = {
  read: plain('PRAGMA busy_timeout'),
  set: (ms) => `PRAGMA busy_timeout = ${Math.max(0, Math.trunc(ms))}`,
}

/** Changes no row, and takes the right to write all the same. */
export const takeWriter: Statement = plain('UPDATE main.holdfast_lock SET name = name WHERE 0')

/** A number of the user's in the file, which needs no table. */
export const userVersion = 'PRAGMA user_version'

/** Writes that number as it is, and takes it back. */
export function mayWrite([row]: readonly Row[]): readonly string[] {
  const same = Math.trunc(Number(row?.['user_version'] ?? 0))
  return [
    'SAVEPOINT holdfast_may_write',
    `${userVersion} = ${same}`,
    'ROLLBACK TO holdfast_may_write',
    'RELEASE holdfast_may_write',
  ]
}

export const ping: Statement = plain('SELECT 1')

/** Asked once of each connection of ours. */
export const facts: Statement = plain(
  `SELECT sqlite_version() AS version, (SELECT file FROM pragma_database_list WHERE name = 'main') AS file,
(SELECT journal_mode FROM pragma_journal_mode) AS mode`,
)

/** Files of a connection, by what they are called there. A SELECT would open a view of the file. */
export const files = 'PRAGMA database_list'

export function plain(text: string): Statement {
  return { text, values: [] }
}
