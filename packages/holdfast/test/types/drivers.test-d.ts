/**
 * Compiled, never run: each driver gives the client's own transaction type, read off the client
 * that was passed in, and what is no transaction does not compile where the types can tell.
 */
import { type ExtractTablesWithRelations, sql as drizzleSql } from 'drizzle-orm'
import type { NodePgDatabase, NodePgQueryResultHKT } from 'drizzle-orm/node-postgres'
import { integer, type PgTransaction, pgTable, text } from 'drizzle-orm/pg-core'
import type { PostgresJsDatabase, PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js'
import type { SqlEntityManager } from '@mikro-orm/postgresql'
import type { Knex } from 'knex'
import type { ControlledTransaction, Kysely, Transaction as KyselyTransaction } from 'kysely'
import type pg from 'pg'
import type postgres from 'postgres'
import type { Sequelize, Transaction as SequelizeTransaction } from 'sequelize'
import type { DataSource, EntityManager } from 'typeorm'
import { fromDrizzle } from '../../src/drivers/drizzle.ts'
import { fromKnex } from '../../src/drivers/knex.ts'
import { fromKysely } from '../../src/drivers/kysely.ts'
import { fromMikroOrm } from '../../src/drivers/mikro-orm.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../src/drivers/prisma.ts'
import { fromSequelize } from '../../src/drivers/sequelize.ts'
import { fromTypeOrm } from '../../src/drivers/typeorm.ts'
import { createHoldfast, type Driver, lockKey } from '../../src/index.ts'
import type { Prisma, PrismaClient } from '../conformance/prisma/generated/client.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type TxOf<D> = D extends Driver<infer Tx> ? Tx : never

declare function proven<_Proof extends true>(): void

const key = lockKey('types', 1)

export async function onPg(pool: pg.Pool, client: pg.PoolClient): Promise<void> {
  const driver = fromPg(pool, { prepare: 'never' })
  proven<Same<TxOf<typeof driver>, pg.PoolClient>>()
  const hf = createHoldfast(driver)
  await hf.locks.acquire(client, key)
  const result = await hf.guard(key, async (tx) => (await tx.query<{ n: number }>('')).rows)
  proven<Same<typeof result, { n: number }[]>>()
  // @ts-expect-error -- a pool is not a transaction
  await hf.locks.acquire(pool, key)
  // @ts-expect-error -- nor does a client open transactions of its own
  fromPg(client)
  hf.leader({ name: 'types', session: driver })
}

export async function onPostgresJs(
  sql: postgres.Sql,
  typed: postgres.Sql<{ date: Date }>,
  reserved: postgres.ReservedSql,
): Promise<void> {
  const driver = fromPostgresJs(sql)
  proven<Same<TxOf<typeof driver>, postgres.TransactionSql>>()
  const typedDriver = fromPostgresJs(typed, { prepare: 'auto' })
  proven<Same<TxOf<typeof typedDriver>, postgres.TransactionSql<{ date: Date }>>>()
  const hf = createHoldfast(driver)
  await hf.guard(key, async (tx) => await tx.savepoint(async (inner) => await inner`SELECT 1`))
  await sql.begin(async (tx) => await hf.locks.acquire(tx, key))
  // @ts-expect-error -- the root is not a transaction
  await hf.locks.acquire(sql, key)
  // @ts-expect-error -- nor is a reserved connection
  await hf.locks.acquire(reserved, key)
}

export async function onPrisma(prisma: PrismaClient): Promise<void> {
  const driver = fromPrisma(prisma, { transactionTimeoutMs: 10_000 })
  type Native = Parameters<Parameters<typeof prisma.$transaction>[0]>[0]
  proven<Same<TxOf<typeof driver>, Native>>()
  const hf = createHoldfast(driver)
  const balance = await hf.guard(key, async (tx) => {
    const found = await tx.account.findUniqueOrThrow({ where: { id: '1' } })
    return found.balance
  })
  proven<Same<typeof balance, number>>()
  const given = async (tx: Prisma.TransactionClient): Promise<void> =>
    await hf.locks.acquire(tx, key)
  await prisma.$transaction(given)
  // @ts-expect-error -- anything else is not a transaction
  await hf.locks.acquire({}, key)

  const extended = prisma.$extends({
    model: { account: { rich: async (): Promise<'rich'> => await Promise.resolve('rich') } },
  })
  const extendedHf = createHoldfast(fromPrisma(extended))
  const rich = await extendedHf.guard(key, async (tx) => await tx.account.rich())
  proven<Same<typeof rich, 'rich'>>()
  await extended.$transaction(async (tx) => await extendedHf.locks.acquire(tx, key))
  // @ts-expect-error -- its client cannot keep a connection
  createHoldfast(fromPrisma(prisma)).leader({ name: 'types', session: fromPrisma(prisma) })
}

const account = pgTable('account', { id: text().primaryKey(), balance: integer().notNull() })
const schema = { account }
type Schema = typeof schema
type Relations = ExtractTablesWithRelations<Schema>

export async function onDrizzle(
  db: NodePgDatabase<Schema>,
  other: PostgresJsDatabase<Schema>,
): Promise<void> {
  const driver = fromDrizzle(db, drizzleSql)
  proven<Same<TxOf<typeof driver>, PgTransaction<NodePgQueryResultHKT, Schema, Relations>>>()
  const otherDriver = fromDrizzle(other, drizzleSql)
  proven<
    Same<TxOf<typeof otherDriver>, PgTransaction<PostgresJsQueryResultHKT, Schema, Relations>>
  >()
  const hf = createHoldfast(driver)
  const rows = await hf.guard(key, async (tx) => await tx.query.account.findMany())
  proven<Same<typeof rows, { id: string; balance: number }[]>>()
  await db.transaction(async (tx) => {
    await hf.locks.acquire(tx, key)
    await tx.transaction(async (inner) => await hf.locks.acquire(inner, key))
  })
  // @ts-expect-error -- the root database is not a transaction
  await hf.locks.acquire(db, key)
}

interface Database {
  account: { id: string; balance: number }
}

export async function onKysely(
  db: Kysely<Database>,
  controlled: ControlledTransaction<Database>,
  withSavepoint: ControlledTransaction<Database, ['mine']>,
): Promise<void> {
  const driver = fromKysely(db)
  proven<Same<TxOf<typeof driver>, KyselyTransaction<Database>>>()
  const hf = createHoldfast(driver)
  const rows = await hf.guard(
    key,
    async (tx) => await tx.selectFrom('account').selectAll().execute(),
  )
  proven<Same<typeof rows, Database['account'][]>>()
  await hf.locks.acquire(controlled, key)
  await hf.locks.acquire(withSavepoint, key)
  await hf.rows.lock(controlled, 'account', ['a'])
  await hf.rows.lockTable(controlled, { schema: 'other', table: 'anything' }, 'share')
  // @ts-expect-error -- not a table of the database's type
  await hf.rows.lock(controlled, 'acount', ['a'])
  // @ts-expect-error -- the root instance is not a transaction
  await hf.locks.acquire(db, key)
}

export async function onTypeOrm(dataSource: DataSource): Promise<void> {
  const driver = fromTypeOrm(dataSource)
  proven<Same<TxOf<typeof driver>, EntityManager>>()
  const hf = createHoldfast(driver)
  await hf.guard(key, async (manager) => await manager.query('SELECT 1'))
  await dataSource.transaction(async (manager) => await hf.locks.acquire(manager, key))
  // @ts-expect-error -- the data source is not a transaction
  await hf.locks.acquire(dataSource, key)
}

export async function onKnex(knex: Knex): Promise<void> {
  const driver = fromKnex(knex)
  proven<Same<TxOf<typeof driver>, Knex.Transaction>>()
  const hf = createHoldfast(driver)
  await hf.guard(key, async (trx) => await trx('account').where({ id: '1' }))
  await knex.transaction(async (trx) => await hf.locks.acquire(trx, key))
  // @ts-expect-error -- the root instance is not a transaction
  await hf.locks.acquire(knex, key)
}

export async function onMikroOrm(em: SqlEntityManager): Promise<void> {
  const driver = fromMikroOrm(em)
  proven<Same<TxOf<typeof driver>, SqlEntityManager>>()
  const hf = createHoldfast(driver)
  await hf.guard(key, async (tx) => await tx.execute('SELECT 1'))
  // @ts-expect-error -- anything else is not a transaction
  await hf.locks.acquire({}, key)
}

export async function onSequelize(sequelize: Sequelize): Promise<void> {
  const driver = fromSequelize(sequelize)
  proven<Same<TxOf<typeof driver>, SequelizeTransaction>>()
  const hf = createHoldfast(driver)
  await hf.guard(key, async (transaction) => await sequelize.query('SELECT 1', { transaction }))
  // @ts-expect-error -- the root instance is not a transaction
  await hf.locks.acquire(sequelize, key)
}
