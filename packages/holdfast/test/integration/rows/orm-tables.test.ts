/** Rows of a table that is named by an ORM's own model. */
import 'reflect-metadata'
import { EntitySchema as MikroSchema } from '@mikro-orm/core'
import { MikroORM } from '@mikro-orm/postgresql'
import { PrismaPg } from '@prisma/adapter-pg'
import { alias, pgSchema, primaryKey, integer, text, pgTable } from 'drizzle-orm/pg-core'
import { DataTypes, Sequelize } from 'sequelize'
import { DataSource, EntitySchema } from 'typeorm'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { TableInput } from '../../../src/entries/rows.ts'
import { PrismaClient } from '../../conformance/prisma/generated/client.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()

beforeAll(async () => {
  await fixture.pool.query(`CREATE SCHEMA shop;
    CREATE TABLE shop."Accounts" (the_id text PRIMARY KEY, balance int NOT NULL);
    INSERT INTO shop."Accounts" VALUES ('a', 1), ('b', 2)`)
})

/** Each has other names in the program than in the database. */
const tables: Record<string, () => Promise<TableInput>> = {
  Drizzle: async () =>
    pgSchema('shop').table('Accounts', {
      id: text('the_id').primaryKey(),
      balance: integer().notNull(),
    }),
  async TypeORM() {
    const entity = new EntitySchema<{ id: string }>({
      name: 'Account',
      schema: 'shop',
      tableName: 'Accounts',
      columns: { id: { type: 'text', primary: true, name: 'the_id' } },
    })
    const { url } = fixture.database
    const source = await new DataSource({ type: 'postgres', url, entities: [entity] }).initialize()
    onTestFinished(async () => await source.destroy())
    return source.getMetadata(entity)
  },
  async MikroORM() {
    const entity = new MikroSchema<{ id: string }>({
      name: 'Account',
      schema: 'shop',
      tableName: 'Accounts',
      properties: { id: { type: 'text', primary: true, fieldName: 'the_id' } },
    })
    const orm = await MikroORM.init({ clientUrl: fixture.database.url, entities: [entity] })
    onTestFinished(async () => await orm.close(true))
    return orm.em.getMetadata(entity)
  },
  async Sequelize() {
    const sequelize = new Sequelize(fixture.database.url, { logging: false })
    onTestFinished(async () => await sequelize.close())
    const id = { type: DataTypes.TEXT, primaryKey: true, field: 'the_id' }
    return sequelize.define('Account', { id }, { schema: 'shop', tableName: 'Accounts' })
  },
}

test.each(Object.entries(tables))(
  "U10: rows by the model of %s, by the database's names",
  async (_, make) => {
    const table = await make()
    const { hf } = fixture
    await hf.transaction(async (tx) => {
      const { rows } = await hf.rows.lock(tx, table, ['b', 'a'])
      expect(rows).toEqual([
        { the_id: 'b', balance: 2 },
        { the_id: 'a', balance: 1 },
      ])
      // Control: whoever comes now finds them locked.
      const rival = `SELECT FROM shop."Accounts" FOR UPDATE SKIP LOCKED`
      expect((await fixture.pool.query(rival)).rows).toEqual([])
    })
    await hf.transaction(async (tx) => await hf.rows.lockTable(tx, table, 'share'))
  },
)

test('U10: rows by the model of Prisma, of the client, a transaction or an extension', async () => {
  await fixture.pool.query(`CREATE TABLE "Holders" (the_id text PRIMARY KEY, balance int NOT NULL);
    INSERT INTO "Holders" VALUES ('a', 1)`)
  const adapter = new PrismaPg({ connectionString: fixture.database.url, max: 2 })
  const prisma = new PrismaClient({ adapter })
  onTestFinished(async () => await prisma.$disconnect())
  await fixture.pool.query(`CREATE SCHEMA tenant; CREATE TABLE tenant."Holders" (LIKE "Holders");
    INSERT INTO tenant."Holders" VALUES ('a', 999)`)
  const apart = new PrismaClient({
    adapter: new PrismaPg({ connectionString: fixture.database.url }, { schema: 'tenant' }),
  })
  const extended = prisma.$extends({ model: { holder: { hello: () => 'hello' } } })
  const hf = createHoldfast(fromPrisma(prisma))
  await hf.transaction(async (tx) => {
    for (const table of [prisma.holder, tx.holder, extended.holder]) {
      const { rows } = await hf.rows.lock(tx, table, ['a'])
      expect(rows).toEqual([{ the_id: 'a', balance: 1 }])
    }
    const rival = `SELECT FROM "Holders" FOR UPDATE SKIP LOCKED`
    expect((await fixture.pool.query(rival)).rows).toEqual([])
    expect((await hf.rows.lock(tx, apart.holder, ['a'])).rows).toMatchObject([{ balance: 999 }])
  })
})

test('an alias of Drizzle is the table that it stands for', async () => {
  await fixture.pool.query(`CREATE TABLE node (id text PRIMARY KEY); INSERT INTO node VALUES ('a')`)
  const node = pgTable('node', { id: text().primaryKey() })
  const { hf } = fixture
  await hf.transaction(async (tx) => {
    expect((await hf.rows.lock(tx, alias(node, 'parent'), ['a'])).rows).toEqual([{ id: 'a' }])
  })
})

test('what an ORM chooses elsewhere, and a misspelt schema, are refused', async () => {
  const { hf } = fixture
  const meta = { tableName: 'Accounts', schema: '*', primaryKeys: ['id'], properties: {} }
  const misspelt = { schma: 'shop', table: 'Accounts' }
  await hf.transaction(async (tx) => {
    for (const table of [meta, misspelt]) {
      const refused = { code: 'OPTION_INVALID' }
      await expect(hf.rows.lock(tx, table, ['a'])).rejects.toMatchObject(refused)
      await expect(hf.rows.lockTable(tx, table, 'share')).rejects.toMatchObject(refused)
    }
  })
})

describe('a table of Drizzle with a key of several columns', () => {
  const table = pgTable('pairs', { a: text(), b: text() }, ({ a, b }) => [
    primaryKey({ columns: [a, b] }),
  ])

  test('must be told its key columns', async () => {
    await fixture.pool.query('CREATE TABLE pairs (a text, b text, PRIMARY KEY (a, b))')
    await fixture.pool.query("INSERT INTO pairs VALUES ('x', 'y')")
    const { hf } = fixture
    await hf.transaction(async (tx) => {
      const untold = hf.rows.lock(tx, table, ['x'])
      await expect(untold).rejects.toMatchObject({ code: 'OPTION_INVALID' })
      const keyColumns = ['a', 'b']
      const { rows } = await hf.rows.lock(tx, table, [{ a: 'x', b: 'y' }], { keyColumns })
      expect(rows).toEqual([{ a: 'x', b: 'y' }])
    })
  })
})
