import 'reflect-metadata'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/mysql2'
import { CompiledQuery, Kysely, MysqlDialect, sql as kyselySql, type Transaction } from 'kysely'
import * as mariadb from 'mariadb'
import { createPool as createCorePool, type Pool as CorePool } from 'mysql2'
import { createPool, type PoolConnection } from 'mysql2/promise'
import { DataSource, type EntityManager } from 'typeorm'
import type { Row } from '../../../packages/holdfast/src/core/driver.ts'
import { fromDrizzleMysql } from '../../../packages/holdfast/src/drivers/drizzle-mysql.ts'
import { fromKyselyMysql } from '../../../packages/holdfast/src/drivers/kysely-mysql.ts'
import { fromMariadb } from '../../../packages/holdfast/src/drivers/mariadb.ts'
import { fromMysql2 } from '../../../packages/holdfast/src/drivers/mysql2.ts'
import { fromTypeOrmMysql } from '../../../packages/holdfast/src/drivers/typeorm-mysql.ts'
import type { InnodbDriver } from '../../../packages/holdfast/src/mysql.ts'
import type { BodyClient } from './lane.ts'

/** A client with its driver. */
export interface InnodbBodyClient extends BodyClient {
  readonly driver: InnodbDriver<unknown>
}

/** So many connections each: the body's, one for the root client in it, and one to spare. */
export const poolSize = 3

interface Typed<Tx> extends BodyClient<Tx> {
  readonly driver: InnodbDriver<Tx>
}

const untyped = <Tx>(client: Typed<Tx>): InnodbBodyClient => client as unknown as InnodbBodyClient

const rowsIn = (answer: unknown): readonly Row[] => (Array.isArray(answer) ? (answer as Row[]) : [])

interface Ears {
  on(event: string, heard: (each: Ears) => void): unknown
}

/** Every program with a pool needs it: connections are killed here, idle and in use. */
function withEars<Pool extends object>(pool: Pool): Pool {
  ;(pool as Ears).on('connection', (each) => void each.on('error', () => undefined))
  return pool
}

/** As a promise, also if it throws at once. */
async function called(call: () => unknown): Promise<unknown> {
  return await Promise.resolve(call())
}

let savepoints = 0

/** Each has a name of its own: another one of the same name would take its place, and not stand inside of it. */
const byHand =
  <Tx>(run: (tx: Tx, text: string) => Promise<unknown>): BodyClient<Tx>['nested'] =>
  async (tx, body) => {
    savepoints += 1
    const name = `by_hand_${savepoints}`
    await run(tx, `SAVEPOINT ${name}`)
    try {
      await body(tx)
    } catch (error) {
      await run(tx, `ROLLBACK TO SAVEPOINT ${name}`)
      await run(tx, `RELEASE SAVEPOINT ${name}`)
      throw error
    }
    await run(tx, `RELEASE SAVEPOINT ${name}`)
  }

/** The connection with callbacks that is beneath one with promises. */
function beneathPromises(connection: object, text: string): Promise<unknown> {
  const { connection: core } = connection as {
    readonly connection: {
      query(text: string, answer: (error: Error | null, rows: unknown) => void): void
    }
  }
  return new Promise((resolve, reject) => {
    core.query(text, (error, rows) => {
      if (error) reject(error)
      else resolve(rows)
    })
  })
}

type Opener = (uri: string, multi: boolean) => Promise<InnodbBodyClient>

const openCore = (uri: string, multi: boolean): CorePool =>
  withEars(createCorePool({ uri, connectionLimit: poolSize, multipleStatements: multi }))

const openers = {
  async mysql2(uri, multi) {
    const pool = createPool({ uri, connectionLimit: poolSize, multipleStatements: multi })
    withEars(pool.pool)
    const run = async (tx: PoolConnection, text: string): Promise<readonly Row[]> =>
      rowsIn((await tx.query(text))[0])
    return untyped<PoolConnection>({
      driver: fromMysql2(pool) as never,
      run,
      other: async (tx, text) => await tx.execute(text),
      beneath: beneathPromises,
      async prepare(tx, text) {
        const prepared = await tx.prepare(text)
        return async () => await prepared.execute([])
      },
      own: (tx, what) => called(() => (what === 'begin' ? tx.beginTransaction() : tx[what]())),
      root: async (text) => rowsIn((await pool.query(text))[0]),
      nested: byHand(run),
      end: () => pool.end(),
    })
  },
  async mariadb(uri, multi) {
    const { hostname: host, port, username: user, pathname } = new URL(uri)
    const pool = mariadb.createPool({
      host,
      port: Number(port),
      user,
      database: pathname.slice(1),
      connectionLimit: poolSize,
      multipleStatements: multi,
      // MySQL's default method asks for the server's key where there is no TLS.
      allowPublicKeyRetrieval: true,
    })
    const run = async (tx: mariadb.PoolConnection, text: string): Promise<readonly Row[]> =>
      rowsIn(await tx.query(text))
    return untyped<mariadb.PoolConnection>({
      driver: fromMariadb(pool) as never,
      run,
      other: async (tx, text) => await tx.execute(text),
      async beneath(tx, text) {
        const prepared = await tx.prepare(text)
        try {
          return await prepared.execute()
        } finally {
          prepared.close()
        }
      },
      async prepare(tx, text) {
        const prepared = await tx.prepare(text)
        return async () => await prepared.execute()
      },
      own: (tx, what) => called(() => (what === 'begin' ? tx.beginTransaction() : tx[what]())),
      root: async (text) => rowsIn(await pool.query(text)),
      nested: byHand(run),
      end: () => pool.end(),
    })
  },
  async kysely(uri, multi) {
    const pool = openCore(uri, multi)
    const db = new Kysely<unknown>({ dialect: new MysqlDialect({ pool }) })
    type Tx = Transaction<unknown>
    const run = async (handle: Kysely<unknown>, text: string): Promise<readonly Row[]> =>
      rowsIn((await kyselySql.raw<Row>(text).execute(handle)).rows)
    return untyped<Tx>({
      driver: fromKyselyMysql(db, pool) as never,
      run,
      other: async (tx, text) => await tx.executeQuery(CompiledQuery.raw(text)),
      beneath: async (tx, text) =>
        await tx
          .getExecutor()
          .provideConnection((connection) => connection.executeQuery(CompiledQuery.raw(text))),
      root: (text) => run(db, text),
      // A transaction with a callback has no savepoints of its own in Kysely.
      nested: byHand<Tx>(run),
      end: () => db.destroy(),
    })
  },
  async drizzle(uri, multi) {
    const pool = openCore(uri, multi)
    const db = drizzle(pool)
    type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
    const send = async (on: Pick<Tx, 'execute'>, text: string): Promise<readonly Row[]> =>
      rowsIn(((await on.execute(drizzleSql.raw(text))) as unknown as readonly unknown[])[0])
    return untyped<Tx>({
      driver: fromDrizzleMysql(db) as never,
      run: send,
      other: async (tx, text) => await tx.execute(text),
      beneath: async (tx, text) =>
        await (tx as unknown as { session: { client: PoolConnection } }).session.client.query(text),
      own: (tx, what) => (what === 'rollback' ? called(() => tx.rollback()) : undefined),
      root: (text) => send(db as unknown as Tx, text),
      nested: async (tx, body) => await tx.transaction(body),
      end: () => pool.promise().end(),
    })
  },
  async typeorm(url, multi) {
    const source = new DataSource({
      type: 'mysql',
      url,
      poolSize,
      logging: false,
      multipleStatements: multi,
    })
    await source.initialize()
    withEars((source.driver as unknown as { pool: CorePool }).pool)
    return untyped<EntityManager>({
      driver: fromTypeOrmMysql(source) as never,
      run: async (tx, text) => rowsIn(await tx.query(text)),
      other: async (tx, text) => await tx.queryRunner?.query(text, undefined, true),
      async beneath(tx, text) {
        const connection = (await tx.queryRunner?.connect()) as object
        return await beneathPromises({ connection }, text)
      },
      own(tx, what) {
        const runner = tx.queryRunner
        if (what === 'begin') return runner?.startTransaction()
        if (what === 'commit') return runner?.commitTransaction()
        return what === 'rollback' ? runner?.rollbackTransaction() : runner?.release()
      },
      root: async (text) => rowsIn(await source.query(text)),
      nested: async (tx, body) => await tx.transaction(body),
      end: () => source.destroy(),
    })
  },
} satisfies Readonly<Record<string, Opener>>

export type InnodbClientName = keyof typeof openers
export const innodbClientNames = Object.keys(openers) as readonly InnodbClientName[]

/** `multi`: a text may be several statements. */
export async function openInnodbClient(
  name: InnodbClientName,
  url: string,
  multi: boolean,
): Promise<InnodbBodyClient> {
  return await openers[name](url, multi)
}
