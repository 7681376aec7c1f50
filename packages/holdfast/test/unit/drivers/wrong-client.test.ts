import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2'
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql } from 'drizzle-orm'
import { EntitySchema } from '@mikro-orm/core'
import { MikroORM } from '@mikro-orm/postgresql'
import knex from 'knex'
import { drizzle as drizzleSqlite } from 'drizzle-orm/sqlite-proxy'
import { Kysely, MysqlDialect, PostgresDialect, SqliteDialect } from 'kysely'
import mariadb from 'mariadb'
import mariadbCallback from 'mariadb/callback'
import mysql, { createPool } from 'mysql2'
import { createPoolCluster } from 'mysql2/promise'
import pg from 'pg'
import postgres from 'postgres'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { afterAll, describe, expect, test } from 'vitest'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromDrizzleMysql } from '../../../src/drivers/drizzle-mysql.ts'
import { fromKnex } from '../../../src/drivers/knex.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromKyselyMysql } from '../../../src/drivers/kysely-mysql.ts'
import { fromMariadb } from '../../../src/drivers/mariadb.ts'
import { fromMikroOrm } from '../../../src/drivers/mikro-orm.ts'
import { fromMysql2 } from '../../../src/drivers/mysql2.ts'
import { fromNodeSqlite } from '../../../src/drivers/node-sqlite.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { fromSequelize } from '../../../src/drivers/sequelize.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { fromTypeOrmMysql } from '../../../src/drivers/typeorm-mysql.ts'
import { examine } from '../../../src/health/index.ts'
import { createHoldfast, withCircuit } from '../../../src/index.ts'
import {
  createHoldfast as mysqlHoldfast,
  createInterventions as mysqlInterventions,
  createObserver as mysqlObserver,
  examine as mysqlExamine,
} from '../../../src/mysql.ts'
import { createHoldfast as sqliteHoldfast } from '../../../src/sqlite.ts'
import { createInterventions, createObserver } from '../../../src/observe/index.ts'
import { inspect, migrate } from '../../../src/schema/index.ts'
import { createMoves, initShards, shardedDriver } from '../../../src/shards/index.ts'

/** Nothing connects: port 1 has no server, and nobody is asked. */
const url = 'postgres://somebody:secret@localhost:1/nowhere'
const pool = new pg.Pool({ connectionString: url })
const mysqlPool = createPool({ uri: 'mysql://somebody:secret@localhost:1/nowhere' })

const mariadbAt = { host: '127.0.0.1', port: 1, minimumIdle: 0 }
const mariadbPool = mariadb.createPool(mariadbAt)
const mariadbCallbackPool = mariadbCallback.createPool(mariadbAt)
afterAll(async () => {
  await mariadbPool.end()
  mariadbCallbackPool.end(() => undefined)
})

/** Every client that has a driver, and what people take for one. */
const given: Readonly<Record<string, { readonly make: () => unknown; readonly use: RegExp }>> = {
  'a pg.Pool': { make: () => pool, use: /use fromPg/ },
  'a single pg.Client': { make: () => new pg.Client(url), use: /fromPg with a pg\.Pool/ },
  'the module pg': { make: () => pg, use: /fromPg\(new pg\.Pool\(\)\)/ },
  'the sql of postgres.js': { make: () => postgres(url), use: /use fromPostgresJs/ },
  'a Kysely instance': {
    make: () => new Kysely({ dialect: new PostgresDialect({ pool }) }),
    use: /use fromKysely/,
  },
  'a Kysely instance for MariaDB and MySQL': {
    make: () => new Kysely({ dialect: new MysqlDialect({ pool: mysqlPool }) }),
    use: /use fromKyselyMysql of holdfast\/drivers\/kysely-mysql/,
  },
  'a Drizzle database': { make: () => drizzle(pool), use: /use fromDrizzle/ },
  'a Drizzle database for MariaDB and MySQL': {
    make: () => drizzleMysql(mysqlPool),
    use: /use fromDrizzleMysql of holdfast\/drivers\/drizzle-mysql/,
  },
  'a TypeORM DataSource for MariaDB and MySQL': {
    make: () =>
      new DataSource({ type: 'mariadb', url: 'mysql://somebody:secret@localhost:1/nowhere' }),
    use: /use fromTypeOrmMysql of holdfast\/drivers\/typeorm-mysql/,
  },
  'a Prisma client for MariaDB and MySQL': {
    make: () => ({
      _activeProvider: 'mysql',
      $transaction: made,
      $queryRawUnsafe: made,
      $executeRawUnsafe: made,
    }),
    use: /use fromMysql2 or fromMariadb with a pool of your own/,
  },
  'a Kysely instance for SQLite': {
    make: () => new Kysely({ dialect: new SqliteDialect({ database: made as never }) }),
    use: /use fromKyselySqlite of holdfast\/drivers\/kysely-sqlite/,
  },
  'a Drizzle database for SQLite': {
    make: () => drizzleSqlite(made as never),
    use: /use fromDrizzleSqlite of holdfast\/drivers\/drizzle-sqlite/,
  },
  'a pool of mysql2/promise': { make: () => mysqlPool.promise(), use: /use fromMysql2/ },
  'a pool of mysql2 without promises': {
    make: () => mysqlPool,
    use: /use fromMysql2\(pool\.promise\(\)\)/,
  },
  'a pool of mariadb': { make: () => mariadbPool, use: /use fromMariadb/ },
  'a pool of mariadb/callback': {
    make: () => mariadbCallbackPool,
    use: /use fromMariadb with a pool of mariadb/,
  },
  'a cluster of pools for MariaDB and MySQL': {
    make: () => mysql.createPoolCluster(),
    use: /pass a pool of the primary/,
  },
  'the module of a client for MariaDB and MySQL': {
    make: () => mysql,
    use: /fromMysql2\(createPool\(\{ uri \}\)\)/,
  },
  // Connections are made by connecting, and the old client is not installed: their shapes.
  'a single connection to MariaDB or MySQL': {
    make: () => ({
      beginTransaction: made,
      query: made,
      execute: made,
      commit: made,
      changeUser: made,
    }),
    use: /guards at the same time need connections of their own/,
  },
  'a pool of the old client mysql': {
    make: () => ({ getConnection: made, acquireConnection: made, query: made, end: made }),
    use: /fromMysql2 with a pool of mysql2\/promise/,
  },
  'an EntityManager of TypeORM': {
    make: () => new DataSource({ type: 'postgres', url }).manager,
    use: /pass the DataSource itself/,
  },
  // Of clients without a driver only the names are needed by which they are known.
  'a DuckDB': {
    make: () => ({ run: made, runAndReadAll: made, streamAndRead: made }),
    use: /no locks.*docs\/other-databases\.md/,
  },
  'a pool of SQL Server': {
    make: () => ({
      connected: false,
      connect: made,
      request: made,
      batch: made,
      transaction: made,
      query: made,
    }),
    use: /sp_getapplock/,
  },
  'a client of MongoDB': {
    make: () => ({ connect: made, db: made, startSession: made, withSession: made }),
    use: /a unique index/,
  },
  'a D1 database': {
    make: () => ({ prepare: made, batch: made, exec: made, dump: made, withSession: made }),
    use: /a conditional update/,
  },
  'a Prisma client for SQLite': {
    make: () => ({
      _activeProvider: 'sqlite',
      $transaction: made,
      $queryRawUnsafe: made,
      $executeRawUnsafe: made,
    }),
    use: /become part of the open transaction.*use fromBetterSqlite3/,
  },
  'a TypeORM DataSource for SQLite': {
    make: () => new DataSource({ type: 'better-sqlite3', database: 'app.db', driver: made }),
    use: /share one connection.*use fromBetterSqlite3/,
  },
  'a TypeORM DataSource': {
    make: () => new DataSource({ type: 'postgres', url }),
    use: /use fromTypeOrm/,
  },
  'a Prisma client': {
    // Of a generated client only these are looked at; the conformance suite has the real one.
    make: () => ({ $transaction: made, $queryRawUnsafe: made, $executeRawUnsafe: made }),
    use: /use fromPrisma/,
  },
  'a Knex instance': { make: () => knex({ client: 'pg', connection: url }), use: /use fromKnex/ },
  'a Sequelize instance': {
    make: () => new Sequelize(url, { dialect: 'postgres' }),
    use: /use fromSequelize/,
  },
  'a MikroORM instance': { make: mikroOrm, use: /use fromMikroOrm\(orm\.em\)/ },
  'an entity manager of MikroORM': { make: () => mikroOrm().em, use: /use fromMikroOrm/ },
  // Their shapes; `npm run test:runtimes` has the real ones.
  "Bun's own SQL client": {
    make: () => can('unsafe', 'begin', 'beginDistributed', 'commitDistributed'),
    use: /use postgres\.js or pg/,
  },
  "Neon's client for HTTP": {
    make: () => can('unsafe', 'query', 'transaction'),
    use: /fromPg with the Pool/,
  },
  'a driver of Holdfast': { make: () => fromPg(pool), use: /createHoldfast/ },
  'a Holdfast': { make: () => createHoldfast(fromPg(pool)), use: /driver/ },
  'a text': { make: () => url, use: /of a (?:connection string make a pool|path make a driver)/ },
  undefined: { make: () => undefined, use: /made before/ },
  null: { make: () => null, use: /made before/ },
  'a promise': { make: () => Promise.resolve(pool), use: /await/ },
  'a number': { make: () => 5_432, use: /client/ },
  'an object of another kind': { make: () => ({ host: 'localhost' }), use: /drivers\.md/ },
}

const thing = new EntitySchema<{ id: string }>({
  name: 'Thing',
  properties: { id: { type: 'text', primary: true } },
})

function mikroOrm(): MikroORM {
  return new MikroORM({ clientUrl: url, entities: [thing] })
}

/** A function with these methods. */
function can(...methods: readonly string[]): object {
  return Object.assign(() => undefined, Object.fromEntries(methods.map((name) => [name, made])))
}

function made(): undefined {
  return undefined
}

/** What takes a client, and which one it may be given. */
const takes: Readonly<Record<string, readonly [fits: string, call: (client: never) => unknown]>> = {
  fromPg: ['a pg.Pool', fromPg],
  fromPostgresJs: ['the sql of postgres.js', fromPostgresJs],
  fromKysely: ['a Kysely instance', fromKysely],
  fromKyselyMysql: [
    'a Kysely instance for MariaDB and MySQL',
    (db) => fromKyselyMysql(db, mysqlPool),
  ],
  fromDrizzleMysql: ['a Drizzle database for MariaDB and MySQL', fromDrizzleMysql],
  fromTypeOrmMysql: ['a TypeORM DataSource for MariaDB and MySQL', fromTypeOrmMysql],
  fromMysql2: ['a pool of mysql2/promise', fromMysql2],
  fromMariadb: ['a pool of mariadb', fromMariadb],
  fromDrizzle: ['a Drizzle database', (db) => fromDrizzle(db, sql)],
  fromTypeOrm: ['a TypeORM DataSource', fromTypeOrm],
  fromPrisma: ['a Prisma client', fromPrisma],
  fromKnex: ['a Knex instance', fromKnex],
  fromSequelize: ['a Sequelize instance', fromSequelize],
  fromMikroOrm: ['an entity manager of MikroORM', fromMikroOrm],
  createHoldfast: ['a driver of Holdfast', createHoldfast],
  createObserver: ['a driver of Holdfast', createObserver],
  withCircuit: ['a driver of Holdfast', withCircuit],
  migrate: ['a driver of Holdfast', migrate],
  inspect: ['a driver of Holdfast', inspect],
  examine: ['a driver of Holdfast', examine],
  shardedDriver: ['a driver of Holdfast', (north) => shardedDriver({ north })],
  initShards: ['a driver of Holdfast', (north) => initShards({ north })],
  createMoves: [
    'a driver of Holdfast',
    (driver) => createMoves({ north: { driver, connection: '' } }),
  ],
}

describe.each(Object.entries(takes))('U6: %s', (_, [fits, call]) => {
  test.each(Object.entries(given).filter(([what]) => what !== fits))(
    'refuses %s, and says what fits',
    async (what, { make, use }) => {
      const error = await errorOf(() => call(make() as never))
      expect(error).toMatchObject({ code: 'DRIVER_HANDLE_INVALID', details: { given: what } })
      expect((error as Error).message).toContain(`this is ${what}`)
      expect((error as Error).message).toMatch(use)
      expect((error as Error).message).not.toContain('secret')
    },
  )

  test('takes what it is for', async () => {
    const made = given[fits]?.make()
    const error = await errorOf(() => call(made as never))
    expect(error).not.toMatchObject({ code: 'DRIVER_HANDLE_INVALID' })
  })
})

test.each<readonly [by: string, next: RegExp, call: (url: never) => unknown]>([
  ['fromPg', /new Pool\(\{ connectionString \}\)$/, fromPg],
  ['fromMysql2', /createPool\(\{ uri \}\) of mysql2\/promise$/, fromMysql2],
  ['fromMariadb', /createPool\(\{ uri \}\) of mysql2\/promise$/, fromMariadb],
  [
    'fromKyselyMysql',
    /createPool\(\{ uri \}\) of mysql2\/promise$/,
    (at) => fromKyselyMysql(at, at),
  ],
  ['createHoldfast', /new Pool\(\{ connectionString \}\)$/, createHoldfast],
  ['createHoldfast of holdfast/mysql', /createPool\(\{ uri \}\)/, mysqlHoldfast],
  [
    'createHoldfast of holdfast/sqlite',
    /fromNodeSqlite\(\(\) => new DatabaseSync\(path\)\)$/,
    sqliteHoldfast,
  ],
])('a text for %s: what to make of it is of the same database', (_, next, call) => {
  expect(() => call(url as never)).toThrow(
    expect.objectContaining({
      details: expect.objectContaining({ use: expect.stringMatching(next) as string }) as unknown,
    }),
  )
})

const onMysql = fromMysql2(mysqlPool.promise())
const onSqlite = fromNodeSqlite(made as never)
test.each<readonly [by: string, use: RegExp, call: (driver: never) => unknown, driver: unknown]>([
  ['createObserver', /^import createObserver from holdfast\/mysql$/, createObserver, onMysql],
  [
    'createObserver',
    /^SQLite has no createObserver: see docs\/sqlite\.md$/,
    createObserver,
    onSqlite,
  ],
  [
    'createObserver of mysql',
    /^import createObserver from holdfast\/observe$/,
    mysqlObserver,
    fromPg(pool),
  ],
  [
    'createInterventions',
    /^import createInterventions from holdfast\/mysql$/,
    createInterventions,
    onMysql,
  ],
  ['createInterventions of mysql', /has no createInterventions/, mysqlInterventions, onSqlite],
  ['examine', /^import examine from holdfast\/mysql$/, examine, onMysql],
  ['examine of mysql', /^import examine from holdfast\/health$/, mysqlExamine, fromPg(pool)],
  ['inspect', /have no inspect: see docs\/mysql\.md$/, inspect, onMysql],
  ['migrate', /^import migrate from holdfast\/mysql$/, migrate, onMysql],
  ['createHoldfast', /^import createHoldfast from holdfast\/sqlite$/, createHoldfast, onSqlite],
])(
  '%s with a driver for another product names what there is for it',
  async (_, use, call, driver) => {
    expect(await errorOf(() => call(driver as never))).toMatchObject({
      code: 'ENGINE_MISMATCH',
      details: { use: expect.stringMatching(use) as string },
    })
  },
)

test('a function for createHoldfast of SQLite belongs into a driver', () => {
  expect(() => sqliteHoldfast((() => undefined) as never)).toThrow(
    /pass it to a driver: fromNodeSqlite/,
  )
})

test.each([
  ['a namespace of a cluster', mysql.createPoolCluster().of('*')],
  ['a cluster with promises', createPoolCluster()],
  ['a namespace of one with promises', createPoolCluster().of('*')],
  ['a cluster of mariadb', mariadb.createPoolCluster()],
  ['a filtered cluster of mariadb', mariadb.createPoolCluster().of('*')],
])('%s is known as what it is', (_, cluster) => {
  const given_ = 'a cluster of pools for MariaDB and MySQL'
  for (const from of [fromMysql2, fromMariadb] as readonly ((pool: never) => unknown)[])
    expect(() => from(cluster as never)).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ given: given_ }) as unknown }),
    )
})

test('a Kysely that is too old to say when a transaction is over is refused', () => {
  const old = { isTransaction: false, executeQuery: made, transaction: made }
  expect(() => fromKysely(old as never)).toThrow(
    expect.objectContaining({
      code: 'DRIVER_HANDLE_INVALID',
      message: expect.stringContaining('Kysely 0.28 or newer') as string,
    }),
  )
})

/** With the second argument where there is one. */
const mysqlDrivers: readonly (readonly [
  name: string,
  client: string,
  make: (client: never, options: never) => unknown,
])[] = [
  [
    'fromKyselyMysql',
    'a Kysely instance for MariaDB and MySQL',
    (db, options) => fromKyselyMysql(db, mysqlPool, options),
  ],
  ['fromDrizzleMysql', 'a Drizzle database for MariaDB and MySQL', fromDrizzleMysql],
  ['fromTypeOrmMysql', 'a TypeORM DataSource for MariaDB and MySQL', fromTypeOrmMysql],
]

test.each(mysqlDrivers)(
  '%s is one for MariaDB and MySQL, and has no options',
  (_, client, make) => {
    const given_ = given[client]?.make() as never
    expect(make(given_, undefined as never)).toMatchObject({ engine: { name: 'innodb' } })
    expect(() => make(given_, { pool } as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  },
)

test.each([undefined, pool, mysqlPool.promise(), 'mysql://localhost'])(
  'fromKyselyMysql without the pool of its dialect',
  (other) => {
    const db = given['a Kysely instance for MariaDB and MySQL']?.make()
    expect(() => fromKyselyMysql(db as never, other as never)).toThrow(
      expect.objectContaining({ code: 'DRIVER_HANDLE_INVALID' }),
    )
  },
)

test.each<readonly [name: string, make: () => unknown]>([
  ['of mysql2', () => mysql.createPoolCluster()],
  ['of mysql2, some of it', () => mysql.createPoolCluster().of('*')],
  ['of mysql2/promise', () => createPoolCluster()],
  ['of mysql2/promise, some of it', () => createPoolCluster().of('*')],
  ['of mariadb', () => mariadb.createPoolCluster()],
])('a cluster of pools, %s, is refused by every driver that takes a pool', (_, make) => {
  const db = given['a Kysely instance for MariaDB and MySQL']?.make()
  const drivers: readonly ((pool: never) => unknown)[] = [
    fromMysql2,
    fromMariadb,
    (pool) => fromKyselyMysql(db as never, pool),
  ]
  for (const take of drivers)
    expect(() => take(make() as never)).toThrow(/a lock on one excludes nobody on the others/)
  expect(() => fromDrizzleMysql(drizzleMysql(make() as never))).toThrow(
    expect.objectContaining({ code: 'DRIVER_HANDLE_INVALID' }),
  )
})

test('U6: fromDrizzle without the sql tag of Drizzle', () => {
  for (const tag of [undefined, {}, postgres(url)])
    expect(() => fromDrizzle(drizzle(pool), tag as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
})

test.each<readonly [name: string, client: string, call: (...given: never[]) => unknown]>([
  ['fromPg', 'a pg.Pool', fromPg],
  ['fromPostgresJs', 'the sql of postgres.js', fromPostgresJs],
  ['fromKysely', 'a Kysely instance', fromKysely],
  ['fromPrisma', 'a Prisma client', fromPrisma],
  ['fromKnex', 'a Knex instance', fromKnex],
  ['fromSequelize', 'a Sequelize instance', fromSequelize],
  ['fromTypeOrm', 'a TypeORM DataSource', fromTypeOrm],
  ['fromMikroOrm', 'an entity manager of MikroORM', fromMikroOrm],
  [
    'fromDrizzle',
    'a Drizzle database',
    (db, options) => (fromDrizzle as (...given: unknown[]) => unknown)(db, sql, options),
  ],
])('%s refuses what it does not know after the client', (_, client, call) => {
  const made = given[client]?.make()
  const refusal = (option: string): unknown =>
    expect.objectContaining({
      code: 'OPTION_INVALID',
      details: expect.objectContaining({ option }),
    })
  const makes = (options: unknown): unknown => call(made as never, options as never)
  expect(() => makes({ connectWithinn: '1 s' })).toThrow(refusal('connectWithinn'))
  expect(() => makes('1 s')).toThrow(refusal('options'))
  // As `map` passes it.
  expect(() => makes(0)).toThrow(refusal('options'))
  for (const nothing of [undefined, {}])
    expect(makes(nothing)).toMatchObject({ engine: { name: 'postgres' } })
})

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
    return 'nothing was thrown'
  } catch (error) {
    return error
  }
}

test.each(["Bun's own SQL client", "Neon's client for HTTP"])(
  'U6: fromDrizzle refuses a database on %s',
  (name) => {
    const client = given[name]?.make()
    const db = { dialect: {}, execute: made, transaction: made, select: made, session: { client } }
    expect(() => fromDrizzle(db as never, sql)).toThrow(
      expect.objectContaining({
        code: 'DRIVER_HANDLE_INVALID',
        details: expect.objectContaining({ given: name }),
      }),
    )
  },
)
