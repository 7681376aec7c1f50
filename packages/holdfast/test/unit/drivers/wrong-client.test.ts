import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2'
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql } from 'drizzle-orm'
import { EntitySchema } from '@mikro-orm/core'
import { MikroORM } from '@mikro-orm/postgresql'
import knex from 'knex'
import { Kysely, MysqlDialect, PostgresDialect } from 'kysely'
import { createPool } from 'mysql2'
import pg from 'pg'
import postgres from 'postgres'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { describe, expect, test } from 'vitest'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromDrizzleMysql } from '../../../src/drivers/drizzle-mysql.ts'
import { fromKnex } from '../../../src/drivers/knex.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromKyselyMysql } from '../../../src/drivers/kysely-mysql.ts'
import { fromMikroOrm } from '../../../src/drivers/mikro-orm.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { fromSequelize } from '../../../src/drivers/sequelize.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { fromTypeOrmMysql } from '../../../src/drivers/typeorm-mysql.ts'
import { examine } from '../../../src/health/index.ts'
import { createHoldfast, withCircuit } from '../../../src/index.ts'
import { createObserver } from '../../../src/observe/index.ts'
import { inspect, migrate } from '../../../src/schema/index.ts'
import { createMoves, initShards, shardedDriver } from '../../../src/shards/index.ts'

/** Nothing connects: port 1 has no server, and nobody is asked. */
const url = 'postgres://somebody:secret@localhost:1/nowhere'
const pool = new pg.Pool({ connectionString: url })
const mysqlPool = createPool({ uri: 'mysql://somebody:secret@localhost:1/nowhere' })

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
  'a text': { make: () => url, use: /new Pool\(\{ connectionString \}\)/ },
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
