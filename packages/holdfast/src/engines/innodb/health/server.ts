import type { Row, Statement } from '../../../core/driver.ts'
import { limited, quoteIdentifier } from '../sql/text.ts'

/** Settings that matter, by all names that the two products have for them. */
const names = [
  'version',
  'read_only',
  'innodb_read_only',
  'wsrep_on',
  'group_replication_group_name',
  'group_replication_single_primary_mode',
  'innodb_flush_log_at_trx_commit',
  'log_bin',
  'sync_binlog',
  'innodb_doublewrite',
  'innodb_rollback_on_timeout',
  'innodb_deadlock_detect',
  'innodb_snapshot_isolation',
  'transaction_isolation',
  'tx_isolation',
  'idle_transaction_timeout',
  'lock_wait_timeout',
  'performance_schema',
] as const

export type SettingName = (typeof names)[number]

/** Of the server, and not of this session. Opens no snapshot, and needs no right. */
export const readSettings: Statement = {
  text: `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${names.map((name) => `'${name}'`).join(', ')})`,
  values: [],
}

/** By name; a product does not have all of them. */
export function settingsFrom(rows: readonly Row[]): ReadonlyMap<SettingName, string> {
  return new Map(
    rows.map(({ Variable_name: name, Value: value }) => [
      String(name).toLowerCase() as SettingName,
      String(value),
    ]),
  )
}

export const clusterSize: Statement = {
  text: "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'",
  values: [],
}

/** A row for each primary that this server follows. */
export const followed: Statement = { text: 'SHOW REPLICA STATUS', values: [] }

export const whichDatabase: Statement = { text: 'SELECT DATABASE() AS name', values: [] }

/** Tables of a database whose engine has no transactions. */
export function tablesWithoutTransactions(database: string, most: number, ms: number): Statement {
  const { before, hint } = limited(ms)
  return {
    text: `${before}SELECT ${hint}t.TABLE_NAME AS name, t.ENGINE AS engine, COUNT(*) OVER () AS found
FROM information_schema.TABLES t JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
WHERE t.TABLE_SCHEMA = ? AND t.TABLE_TYPE = 'BASE TABLE' AND COALESCE(e.TRANSACTIONS, 'NO') <> 'YES'
ORDER BY t.TABLE_NAME LIMIT ${most}`,
    values: [database],
  }
}

/** Rights for the whole server, of an account as GRANT writes it. */
export function globalRights(account: string): Statement {
  return {
    text: 'SELECT PRIVILEGE_TYPE AS name FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ?',
    values: [account],
  }
}

/** Rights with which an account writes where the server takes no writes. */
export const writesAnyway: ReadonlySet<string> = new Set([
  'SUPER',
  'READ ONLY ADMIN',
  'READ_ONLY ADMIN',
])

/** How many rows a table has, roughly: counting them would read it. */
export function roughSize(database: string, table: string): Statement {
  return {
    text: `SELECT TABLE_ROWS AS found FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`,
    values: [database, table],
  }
}

// What there is to do, as SQL.

export function setGlobal(name: SettingName, value: string): string {
  return `SET GLOBAL ${name} = ${value};`
}

export function toInnodb(database: string, table: string): string {
  return `ALTER TABLE ${quoteIdentifier(database)}.${quoteIdentifier(table)} ENGINE = InnoDB;`
}

export function addIndex(database: string, table: string, columns: readonly string[]): string {
  const list = columns.map(quoteIdentifier).join(', ')
  const name = quoteIdentifier(`by_${columns.at(-1) ?? ''}`)
  return `ALTER TABLE ${quoteIdentifier(database)}.${quoteIdentifier(table)} ADD KEY ${name} (${list});`
}

export function takeBack(right: string, account: string): string {
  return `REVOKE ${right} ON *.* FROM ${account};`
}

export function forgetIdleLocks(table: string): string {
  return `DELETE FROM ${table} WHERE since < (UNIX_TIMESTAMP() - 86400) * 1000000 LIMIT 1000;`
}
