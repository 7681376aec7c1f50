import 'reflect-metadata'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { CompiledQuery, Kysely, PostgresDialect, sql as kyselySql, type Transaction } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource, type EntityManager } from 'typeorm'
import type { Driver, Row } from '../../packages/holdfast/src/core/driver.ts'
import { fromDrizzle } from '../../packages/holdfast/src/drivers/drizzle.ts'
import { fromKysely } from '../../packages/holdfast/src/drivers/kysely.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { fromPostgresJs } from '../../packages/holdfast/src/drivers/postgres-js.ts'
import { fromPrisma } from '../../packages/holdfast/src/drivers/prisma.ts'
import { fromTypeOrm } from '../../packages/holdfast/src/drivers/typeorm.ts'
import { Prisma, PrismaClient } from '../race/prisma/generated/client.ts'
import type { ClientName, OrmControl, Place } from './bodies-model.ts'

/** A client, behind common names; `Tx` is its own handle and known to nobody else. */
export interface BodyClient {
  readonly driver: Driver<unknown>
  /** One statement on the handle, by the client's own call. */
  run(tx: unknown, text: string): Promise<readonly Row[]>
  /** The same by another call, as far as it has one. */
  other(tx: unknown, text: string): Promise<unknown>
  /** The same on the client beneath an ORM, as far as it can be reached. */
  beneath(tx: unknown, text: string): Promise<unknown>
  /** Begins or ends a transaction by a call of its own, if it has one; says whether it has. */
  orm?(tx: unknown, what: OrmControl): Promise<unknown> | undefined
  /** One statement on the root client, beside every transaction. */
  root(text: string): Promise<readonly Row[]>
  /** A savepoint by the client's own call; by hand where it has none. */
  nested(tx: unknown, body: (inner: unknown) => Promise<void>): Promise<void>
  end(): Promise<void>
}

/** So many connections each: the body's, one for the root client in it, and one to spare. */
export const poolSize = 3

interface Typed<Tx> extends Pick<BodyClient, 'end' | 'root'> {
  readonly driver: Driver<Tx>
  run(tx: Tx, text: string): Promise<readonly Row[]>
  other(tx: Tx, text: string): Promise<unknown>
  beneath(tx: Tx, text: string): Promise<unknown>
  orm?(tx: Tx, what: OrmControl): Promise<unknown> | undefined
  nested(tx: Tx, body: (inner: Tx) => Promise<void>): Promise<void>
}

const untyped = <Tx>(client: Typed<Tx>): BodyClient => client as unknown as BodyClient

function openPgPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: poolSize, idleTimeoutMillis: 0 })
  // Every program with a pool needs these: backends are killed here, idle and in use.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  return pool
}

function openPostgresJs(url: string, pooled: boolean): postgres.Sql {
  return postgres(url, {
    max: poolSize,
    onnotice: () => undefined,
    // As docs/poolers.md says: it prepares its own COMMIT and savepoints otherwise.
    prepare: !pooled,
    // Connections are lost all the time here: without it the pauses before the next one grow to 20 s.
    backoff: () => 0.01,
  })
}

const byHand =
  <Tx>(run: (tx: Tx, text: string) => Promise<unknown>): Typed<Tx>['nested'] =>
  async (tx, body) => {
    await run(tx, 'SAVEPOINT by_hand')
    try {
      await body(tx)
    } catch (error) {
      await run(tx, 'ROLLBACK TO SAVEPOINT by_hand')
      throw error
    }
    await run(tx, 'RELEASE SAVEPOINT by_hand')
  }

/** As a promise, also if it throws at once. */
async function called(call: () => unknown): Promise<unknown> {
  return await Promise.resolve(call())
}

/** Drizzle's sessions keep the client that they send on; not part of its types. */
function beneathDrizzle<Client>(tx: object): Client {
  return (tx as { session: { client: Client } }).session.client
}

/** Statements in files, which postgres.js reads when it sends them. */
const controlFolder = mkdtempSync(join(tmpdir(), 'holdfast-bodies-'))
const controlFiles = Object.fromEntries(
  ['begin', 'commit', 'rollback'].map((name) => {
    const path = join(controlFolder, `${name}.sql`)
    writeFileSync(path, name)
    return [name, path]
  }),
) as Record<'begin' | 'commit' | 'rollback', string>
process.once('exit', () => rmSync(controlFolder, { recursive: true, force: true }))

/** A text as a tagged template passes it. */
function templateOf(text: string): TemplateStringsArray {
  return Object.assign([text], { raw: [text] })
}

type Opener = (url: string, pooled: boolean) => Promise<BodyClient>

const openers: Readonly<Record<ClientName, Opener>> = {
  async pg(url) {
    const pool = openPgPool(url)
    const run = async (tx: pg.PoolClient, text: string): Promise<Row[]> =>
      (await tx.query<Row>(text)).rows
    return untyped({
      driver: fromPg(pool),
      run,
      other: (tx, text) =>
        new Promise((resolve, reject) => {
          tx.query({ text }, (error: Error | null, result) => {
            if (error) reject(error)
            else resolve(result)
          })
        }),
      // Something that sends itself, as pg-cursor does.
      beneath: (tx, text) =>
        new Promise((resolve, reject) => {
          const query = new pg.Query(text)
          query.on('end', resolve)
          query.on('error', reject)
          tx.query(query)
        }),
      orm: (tx, what) => (what === 'release' ? called(() => tx.release()) : undefined),
      root: async (text) => (await pool.query<Row>(text)).rows,
      nested: byHand(run),
      end: () => pool.end(),
    })
  },
  async 'postgres.js'(url, pooled) {
    const sql = openPostgresJs(url, pooled)
    return untyped<postgres.TransactionSql>({
      driver: fromPostgresJs(sql),
      run: async (tx, text) => [...(await tx.unsafe(text))],
      other: async (tx, text) => [...(await tx.call(undefined, templateOf(text)))],
      beneath: async (tx, text) => await tx.unsafe(text).simple(),
      orm: (tx, what) =>
        what === 'release' ? undefined : called(() => tx.file(controlFiles[what])),
      root: async (text) => [...(await sql.unsafe(text))],
      nested: async (tx, body) => {
        await tx.savepoint(body)
      },
      // Without a limit it waits for ever, once a connection was lost under a statement.
      end: () => sql.end({ timeout: 0 }),
    })
  },
  async prisma(url) {
    const prisma = new PrismaClient({
      adapter: new PrismaPg({ connectionString: url, max: poolSize, idleTimeoutMillis: 0 }),
    })
    type Tx = Prisma.TransactionClient
    const run = async (handle: Tx, text: string): Promise<readonly Row[]> => {
      if (/^SELECT (?!.*;)/.test(text)) return await handle.$queryRawUnsafe<Row[]>(text)
      await handle.$executeRawUnsafe(text)
      return []
    }
    return untyped<Tx>({
      driver: fromPrisma(prisma),
      run,
      other: async (tx, text) => await tx.$queryRawUnsafe(text),
      beneath: async (tx, text) => await tx.$executeRaw(Prisma.raw(text)),
      root: (text) => run(prisma, text),
      nested: async (tx, body) => await tx.$transaction(body),
      end: () => prisma.$disconnect(),
    })
  },
  async 'drizzle-pg'(url) {
    const pool = openPgPool(url)
    const db = drizzlePg(pool)
    type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
    return untyped<Tx>({
      driver: fromDrizzle(db, drizzleSql) as Driver<Tx>,
      run: async (tx, text) => (await tx.execute<Row>(drizzleSql.raw(text))).rows,
      other: async (tx, text) => await tx.execute(text),
      beneath: async (tx, text) => await beneathDrizzle<pg.PoolClient>(tx).query(text),
      orm: (tx, what) => (what === 'rollback' ? called(() => tx.rollback()) : undefined),
      root: async (text) => (await db.execute<Row>(drizzleSql.raw(text))).rows,
      nested: async (tx, body) => await tx.transaction(body),
      end: () => pool.end(),
    })
  },
  async 'drizzle-postgres.js'(url, pooled) {
    const client = openPostgresJs(url, pooled)
    const db = drizzlePostgresJs(client)
    type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
    return untyped<Tx>({
      driver: fromDrizzle(db, drizzleSql) as Driver<Tx>,
      run: async (tx, text) => [...(await tx.execute<Row>(drizzleSql.raw(text)))],
      other: async (tx, text) => await tx.execute(text),
      beneath: async (tx, text) => await beneathDrizzle<postgres.TransactionSql>(tx).unsafe(text),
      orm: (tx, what) => (what === 'rollback' ? called(() => tx.rollback()) : undefined),
      root: async (text) => [...(await db.execute<Row>(drizzleSql.raw(text)))],
      nested: async (tx, body) => await tx.transaction(body),
      end: () => client.end({ timeout: 0 }),
    })
  },
  async kysely(url) {
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: openPgPool(url) }) })
    type Tx = Transaction<unknown>
    const run = async (handle: Kysely<unknown>, text: string): Promise<Row[]> =>
      (await kyselySql.raw<Row>(text).execute(handle)).rows
    return untyped<Tx>({
      driver: fromKysely(db),
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
  async typeorm(url) {
    const source = new DataSource({
      type: 'postgres',
      url,
      poolSize,
      logging: false,
      poolErrorHandler: () => undefined,
    })
    await source.initialize()
    const rowsOf = (answer: unknown): readonly Row[] =>
      Array.isArray(answer) ? (answer as Row[]) : []
    return untyped<EntityManager>({
      driver: fromTypeOrm(source) as Driver<EntityManager>,
      run: async (tx, text) => rowsOf(await tx.query(text)),
      other: async (tx, text) => await tx.queryRunner?.query(text, undefined, true),
      beneath: async (tx, text) => {
        const client = (await tx.queryRunner?.connect()) as pg.PoolClient
        return await client.query(text)
      },
      orm(tx, what) {
        if (what === 'begin') return tx.queryRunner?.startTransaction()
        if (what === 'commit') return tx.queryRunner?.commitTransaction()
        return what === 'rollback'
          ? tx.queryRunner?.rollbackTransaction()
          : tx.queryRunner?.release()
      },
      root: async (text) => rowsOf(await source.query(text)),
      nested: async (tx, body) => await tx.transaction(body),
      end: () => source.destroy(),
    })
  },
}

export async function openBodyClient({ client, pooled }: Place, url: string): Promise<BodyClient> {
  return await openers[client](url, pooled)
}
