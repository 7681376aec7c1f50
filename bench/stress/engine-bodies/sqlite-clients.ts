import { createRequire, registerHooks } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { betterSqlite3, serversFolder } from '@holdfast/testkit'
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely'
import { fromBetterSqlite3 } from '../../../packages/holdfast/src/drivers/better-sqlite3.ts'
import { fromDrizzleSqlite } from '../../../packages/holdfast/src/drivers/drizzle-sqlite.ts'
import { fromKyselySqlite } from '../../../packages/holdfast/src/drivers/kysely-sqlite.ts'
import { fromNodeSqlite } from '../../../packages/holdfast/src/drivers/node-sqlite.ts'
import type { SqliteDriver } from '../../../packages/holdfast/src/sqlite.ts'
import type { BodyClient } from './lane.ts'

/** What connections of both clients have in common. */
export interface SqliteHandle {
  readonly isTransaction?: boolean
  readonly inTransaction?: boolean
  exec(sql: string): unknown
  prepare(sql: string): {
    run(...values: unknown[]): unknown
    all(...values: unknown[]): unknown[]
    iterate(...values: unknown[]): IterableIterator<unknown>
    columns(): unknown[]
  }
  close(): unknown
}

type Base = 'node:sqlite' | 'better-sqlite3'

/** How bodies are sent by a client. */
interface Way extends Pick<BodyClient<never>, 'run' | 'other' | 'beneath' | 'prepare' | 'own'> {
  readonly base: Base
  driver(open: () => SqliteHandle): SqliteDriver<unknown>
}

export function openSqlite(base: Base, path: string): SqliteHandle {
  const Database = betterSqlite3()
  if (base === 'node:sqlite') return new DatabaseSync(path) as unknown as SqliteHandle
  if (Database === undefined) throw new Error('better-sqlite3 is not installed')
  return new Database(path, { timeout: 0 }) as unknown as SqliteHandle
}

/** As a promise, also if it throws at once. */
async function called(call: () => unknown): Promise<unknown> {
  return await Promise.resolve(call())
}

function native(base: Base): Way {
  type Tx = SqliteHandle
  return {
    base,
    driver: (open) =>
      (base === 'node:sqlite'
        ? fromNodeSqlite(open as never)
        : fromBetterSqlite3(open as never)) as unknown as SqliteDriver<unknown>,
    async run(tx: Tx, text) {
      tx.exec(text)
      return []
    },
    other: (tx: Tx, text) => called(() => tx.prepare(text).run()),
    beneath: (tx: Tx, text) => called(() => tx.prepare(text).all()),
    async prepare(tx: Tx, text) {
      const prepared = tx.prepare(text)
      return () => called(() => prepared.run())
    },
    own: (tx: Tx, what) => (what === 'release' ? called(() => tx.close()) : undefined),
  }
}

type Db = Kysely<Record<string, never>>

function kysely(base: Base): Way {
  const over = (database: SqliteHandle): Db => {
    // Kysely knows better-sqlite3, which says of a statement whether it gives rows.
    const prepare = (sql: string): unknown => {
      const statement = database.prepare(sql)
      return {
        reader: statement.columns().length > 0,
        all: (values: unknown[]) => statement.all(...values),
        run: (values: unknown[]) => statement.run(...values),
      }
    }
    const given = base === 'better-sqlite3' ? database : { prepare, close: () => database.close() }
    return new Kysely({ dialect: new SqliteDialect({ database: given as never }) })
  }
  return {
    base,
    driver: (open) => fromKyselySqlite(open as never, over as never) as SqliteDriver<unknown>,
    async run(tx: Db, text) {
      await tx.executeQuery(CompiledQuery.raw(text))
      return []
    },
    other: async (tx: Db, text) => {
      for await (const _ of tx.getExecutor().stream(CompiledQuery.raw(text), 1)) break
    },
    beneath: async (tx: Db, text) =>
      await tx
        .getExecutor()
        .provideConnection((connection) => connection.executeQuery(CompiledQuery.raw(text))),
    own(tx: Db, what) {
      if (what === 'begin') return tx.transaction().execute(async () => await Promise.resolve())
      return what === 'release' ? tx.destroy() : undefined
    },
  }
}

interface Drizzle {
  readonly $client: SqliteHandle
  run(query: unknown): unknown
  all(query: unknown): unknown[]
}

async function drizzle(): Promise<Way> {
  const client = join(serversFolder(), 'better-sqlite3-13', 'package.json')
  const url = pathToFileURL(createRequire(client).resolve('better-sqlite3')).href
  // Drizzle imports the client by its name, and it is installed elsewhere.
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'better-sqlite3' ? { url, shortCircuit: true } : next(specifier, context),
  })
  const { drizzle: make } = await import('drizzle-orm/better-sqlite3')
  const { sql } = await import('drizzle-orm')
  const over = (database: SqliteHandle): Drizzle => make(database as never) as unknown as Drizzle
  return {
    base: 'better-sqlite3',
    driver: (open) => fromDrizzleSqlite(open as never, over as never) as SqliteDriver<unknown>,
    async run(tx: Drizzle, text) {
      if (/^select/i.test(text)) tx.all(sql.raw(text))
      else tx.run(sql.raw(text))
      return []
    },
    other: (tx: Drizzle, text) => called(() => tx.$client.prepare(text).run()),
    beneath: (tx: Drizzle, text) => called(() => tx.$client.exec(text)),
    own: (tx: Drizzle, what) => (what === 'release' ? called(() => tx.$client.close()) : undefined),
  }
}

/** Those whose clients are installed for this Node; what is missing is said. */
export async function sqliteWays(): Promise<ReadonlyMap<string, Way>> {
  const ways = new Map<string, Way>([
    ['node:sqlite', native('node:sqlite')],
    ['kysely, node:sqlite', kysely('node:sqlite')],
  ])
  if (betterSqlite3() === undefined) {
    process.stderr.write('!!! better-sqlite3 is not installed, so its bodies do not run\n')
    return ways
  }
  return ways
    .set('better-sqlite3', native('better-sqlite3'))
    .set('kysely, better-sqlite3', kysely('better-sqlite3'))
    .set('drizzle, better-sqlite3', await drizzle())
}
