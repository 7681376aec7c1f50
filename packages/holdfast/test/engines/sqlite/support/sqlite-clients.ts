import { DatabaseSync } from 'node:sqlite'
import { type BetterSqlite3, betterSqlite3 } from '@holdfast/testkit'
import { fromBetterSqlite3 } from '../../../../src/drivers/better-sqlite3.ts'
import { fromNodeSqlite } from '../../../../src/drivers/node-sqlite.ts'
import type { SqliteDriver } from '../../../../src/engines/sqlite/driver.ts'

/** What both clients' connections have in common, as far as bodies of tests go. */
export interface Handle {
  exec(sql: string): unknown
  prepare(sql: string): {
    run(...values: unknown[]): unknown
    all(...values: unknown[]): unknown[]
    get(...values: unknown[]): unknown
    iterate(...values: unknown[]): IterableIterator<unknown>
  }
  close(): unknown
}

export const clientNames = ['node:sqlite', 'better-sqlite3'] as const
export type ClientName = (typeof clientNames)[number]

/** Those that are installed for this Node; what is missing is said once. */
export function installedClients(): readonly ClientName[] {
  if (betterSqlite3() !== undefined) return clientNames
  process.stderr.write('!!! better-sqlite3 is not installed, so its tests do not run\n')
  return ['node:sqlite']
}

/** Opens a connection as the client does it unless it is told otherwise. */
export function openHandle(client: ClientName, file: string, readOnly = false): Handle {
  if (client === 'node:sqlite') return new DatabaseSync(file, { readOnly }) as unknown as Handle
  const Database = betterSqlite3()
  if (Database === undefined) throw new Error('better-sqlite3 is not installed')
  return new Database(file, { readonly: readOnly }) as unknown as Handle
}

/** A driver whose connections are opened by a function. */
export function driverBy(client: ClientName, open: () => Handle): SqliteDriver<Handle> {
  return client === 'node:sqlite'
    ? (fromNodeSqlite(open as unknown as () => DatabaseSync) as unknown as SqliteDriver<Handle>)
    : (fromBetterSqlite3(open as unknown as () => BetterSqlite3) as unknown as SqliteDriver<Handle>)
}

/** Whether a connection is in a transaction. */
export function inTransaction(handle: Handle): boolean {
  const { isTransaction, inTransaction: isIn } = handle as unknown as Readonly<
    Record<string, boolean | undefined>
  >
  return (isTransaction ?? isIn) === true
}

/** The one value of a query. */
export function value(handle: Handle, sql: string, ...bound: unknown[]): unknown {
  return Object.values((handle.prepare(sql).get(...bound) ?? {}) as object)[0]
}
