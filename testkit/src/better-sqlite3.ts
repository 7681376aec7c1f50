import { createRequire } from 'node:module'
import { join } from 'node:path'
import { serversFolder } from './servers/server-binaries.ts'

/** A connection of `better-sqlite3`, as far as tests use it. */
export interface BetterSqlite3 {
  readonly open: boolean
  readonly inTransaction: boolean
  prepare(sql: string): {
    readonly reader: boolean
    all(...values: unknown[]): unknown[]
    get(...values: unknown[]): unknown
    run(...values: unknown[]): { changes: number; lastInsertRowid: number | bigint }
    iterate(...values: unknown[]): IterableIterator<unknown>
    safeIntegers(on: boolean): unknown
  }
  exec(sql: string): unknown
  pragma(sql: string): unknown
  transaction(body: () => void): () => void
  close(): unknown
}

export type BetterSqlite3Class = new (
  path: string,
  options?: { readonly timeout?: number; readonly readonly?: boolean },
) => BetterSqlite3

/**
 * The client, which is compiled for one version of Node; see scripts/install-engines.sh. Nothing if it is not installed
 * for this one.
 */
export function betterSqlite3(): BetterSqlite3Class | undefined {
  const folder = join(serversFolder(), 'better-sqlite3-13')
  try {
    return createRequire(join(folder, 'package.json'))('better-sqlite3') as BetterSqlite3Class
  } catch {
    return undefined
  }
}
