import { createRequire, registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { DatabaseSync } from 'node:sqlite'
import { betterSqlite3, serversFolder } from '@holdfast/testkit'
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely'
import { fromDrizzleSqlite } from '../../../../src/drivers/drizzle-sqlite.ts'
import { fromKyselySqlite } from '../../../../src/drivers/kysely-sqlite.ts'
import type { SqliteDatabase } from '../../../../src/drivers/sqlite/sqlite-orm.ts'
import type { SqliteDriver } from '../../../../src/engines/sqlite/driver.ts'
import { type ClientName, openHandle } from './sqlite-clients.ts'

/** What tests do with the handles of an ORM. */
export interface OrmHandle {
  readonly orm: object
}

/** An ORM over a client. */
export interface OrmClient {
  readonly name: string
  readonly client: ClientName
  driver(
    open: () => SqliteDatabase,
    over?: (database: SqliteDatabase) => OrmHandle['orm'],
  ): SqliteDriver<OrmHandle['orm']>
  /** An instance of the caller's own. */
  over(database: SqliteDatabase): OrmHandle['orm']
  send(orm: object, text: string): Promise<unknown>
  /** The ORM's own transaction. */
  nested(orm: object, text: string): Promise<unknown>
}

type Tables = Record<string, never>
type Rows = { readonly rows: unknown[] }

function kyselyOver(database: SqliteDatabase): Kysely<Tables> {
  // Kysely knows better-sqlite3, which says of a statement whether it gives rows.
  const given = database as unknown as { prepare(sql: string): { columns?(): unknown[] } }
  const prepare = (sql: string): unknown => {
    const statement = given.prepare(sql) as Readonly<Record<string, unknown>> & {
      columns(): unknown[]
      all(...values: unknown[]): unknown[]
      run(...values: unknown[]): unknown
    }
    if (typeof statement['reader'] === 'boolean') return statement
    return {
      reader: statement.columns().length > 0,
      all: (values: unknown[]) => statement.all(...values),
      run: (values: unknown[]) => statement.run(...values),
    }
  }
  const close = (): void => (database as DatabaseSync).close()
  return new Kysely<Tables>({
    dialect: new SqliteDialect({ database: { prepare, close } as never }),
  })
}

function kysely(client: ClientName): OrmClient {
  const send = async (orm: object, text: string): Promise<unknown> =>
    ((await (orm as Kysely<Tables>).executeQuery(CompiledQuery.raw(text))) as Rows).rows
  return {
    name: 'kysely',
    client,
    driver: (open, made = kyselyOver) =>
      fromKyselySqlite(open, made) as unknown as SqliteDriver<object>,
    over: kyselyOver,
    send,
    nested: async (orm, text) =>
      await (orm as Kysely<Tables>).transaction().execute(async (trx) => await send(trx, text)),
  }
}

interface Drizzle {
  run(query: unknown): unknown
  all(query: unknown): unknown[]
  transaction(body: (tx: Drizzle) => unknown): unknown
}

async function drizzle(): Promise<OrmClient> {
  const client = join(serversFolder(), 'better-sqlite3-13', 'package.json')
  const url = pathToFileURL(createRequire(client).resolve('better-sqlite3')).href
  // Drizzle imports the client by its name, and it is installed elsewhere.
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'better-sqlite3' ? { url, shortCircuit: true } : next(specifier, context),
  })
  const { drizzle: make } = await import('drizzle-orm/better-sqlite3')
  const { sql } = await import('drizzle-orm')
  const over = (database: SqliteDatabase): Drizzle => make(database as never) as unknown as Drizzle
  const send = async (orm: object, text: string): Promise<unknown> =>
    /^select/i.test(text)
      ? (orm as Drizzle).all(sql.raw(text))
      : (orm as Drizzle).run(sql.raw(text))
  return {
    name: 'drizzle-orm',
    client: 'better-sqlite3',
    driver: (open, made = over) =>
      fromDrizzleSqlite(open, made as typeof over) as unknown as SqliteDriver<object>,
    over,
    send,
    nested: async (orm, text) => (orm as Drizzle).transaction((tx) => tx.run(sql.raw(text))),
  }
}

/** Those whose clients are installed. */
export async function ormClients(): Promise<readonly OrmClient[]> {
  const onNode = kysely('node:sqlite')
  return betterSqlite3() === undefined
    ? [onNode]
    : [onNode, kysely('better-sqlite3'), await drizzle()]
}

/** Opens a connection for an ORM. */
export function openDatabase(client: ClientName, file: string): SqliteDatabase {
  return openHandle(client, file) as unknown as SqliteDatabase
}
