/**
 * Rows by a model whose schema is chosen somewhere else than in the model: every way of every ORM to say it, with every
 * call that takes a model. The ORM's own statement says which table is right.
 */
import 'reflect-metadata'
import { EntitySchema as MikroSchema } from '@mikro-orm/core'
import { type ForkOptions, MikroORM, type Options } from '@mikro-orm/postgresql'
import { PrismaPg } from '@prisma/adapter-pg'
import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgSchema, pgTable, text } from 'drizzle-orm/pg-core'
import { Pool } from 'pg'
import { DataTypes, type ModelStatic, type Model, Sequelize } from 'sequelize'
import { DataSource, EntitySchema } from 'typeorm'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromMikroOrm } from '../../../src/drivers/mikro-orm.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { fromSequelize } from '../../../src/drivers/sequelize.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { TableInput } from '../../../src/entries/rows.ts'
import { PrismaClient } from '../../conformance/prisma/generated/client.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

/** `found` is where the search path leads; `public` and `other` have a table of the same name. */
const schemas = ['public', 'found', 'other'] as const

const fixture = pgFixture(`CREATE SCHEMA found; CREATE SCHEMA other;
  ${schemas
    .map(
      (schema, at) => `CREATE TABLE ${schema}."Holders" (
        the_id text PRIMARY KEY, balance int NOT NULL, version int NOT NULL DEFAULT 1);
      INSERT INTO ${schema}."Holders" VALUES ('a', ${at})`,
    )
    .join(';\n')};
  DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = found, public', current_database()); END $$`)

/** An ORM with a model. */
interface Place {
  readonly driver: Driver<unknown>
  readonly model: TableInput
  /** Reads the row as the ORM does: its balance names the schema. */
  read(tx: unknown): Promise<number | undefined>
  /** The caller's own transaction, where it is not the one that Holdfast opens. */
  transaction?(body: (tx: unknown) => Promise<void>): Promise<unknown>
}

type Make = () => Promise<Place>
const atEnd = (end: () => Promise<unknown>): void => onTestFinished(async () => void (await end()))

interface MikroWay {
  readonly entity?: string
  readonly config?: Partial<Options>
  /** Of the root manager, and of the one that opens the caller's transaction. */
  readonly root?: ForkOptions
  readonly fork?: ForkOptions
  /** Set on the manager of the transaction. */
  readonly set?: string
}

function mikro({ entity, config = {}, root, fork, set }: MikroWay): Make {
  return async () => {
    const Holder = new MikroSchema<{ id: string; balance: number }>({
      name: 'Holder',
      tableName: 'Holders',
      ...(entity === undefined ? {} : { schema: entity }),
      properties: {
        id: { type: 'text', primary: true, fieldName: 'the_id' },
        balance: { type: 'integer' },
      },
    })
    const clientUrl = fixture.database.url
    const orm = await MikroORM.init({ clientUrl, entities: [Holder], ...config })
    atEnd(() => orm.close(true))
    const em = root === undefined ? orm.em : orm.em.fork(root)
    type Em = typeof orm.em
    return {
      driver: fromMikroOrm(em) as unknown as Driver<unknown>,
      model: orm.em.getMetadata(Holder),
      read: async (tx) => (await (tx as Em).findOne(Holder, 'a'))?.balance,
      ...(fork === undefined && set === undefined
        ? {}
        : {
            transaction: (body) =>
              em.fork(fork).transactional(async (inner) => {
                if (set !== undefined) inner.schema = set
                await body(inner)
              }),
          }),
    }
  }
}

interface SequelizeWay {
  readonly options?: object
  readonly model?: object
  readonly as?: string
}

function sequelize({ options = {}, model = {}, as }: SequelizeWay): Make {
  return async () => {
    const instance = new Sequelize(fixture.database.url, { logging: false, ...options })
    atEnd(() => instance.close())
    const id = { type: DataTypes.TEXT, primaryKey: true, field: 'the_id' }
    const fields = { id, balance: DataTypes.INTEGER }
    const settings = { tableName: 'Holders', timestamps: false, ...model }
    const defined = instance.define('Holder', fields, settings)
    const Holder: ModelStatic<Model> = as === undefined ? defined : defined.schema(as)
    return {
      driver: fromSequelize(instance) as Driver<unknown>,
      model: Holder,
      read: async (tx) => {
        const found = await Holder.findByPk('a', { transaction: tx as never })
        return found?.get('balance') as number | undefined
      },
    }
  }
}

function typeOrm(entity?: string, options: object = {}): Make {
  return async () => {
    const Holder = new EntitySchema<{ id: string; balance: number }>({
      name: 'Holder',
      ...(entity === undefined ? {} : { schema: entity }),
      tableName: 'Holders',
      columns: {
        id: { type: 'text', primary: true, name: 'the_id' },
        balance: { type: 'int' },
      },
    })
    const { url } = fixture.database
    const source = new DataSource({ type: 'postgres', url, entities: [Holder], ...options })
    await source.initialize()
    atEnd(() => source.destroy())
    return {
      driver: fromTypeOrm(source) as Driver<unknown>,
      model: source.getMetadata(Holder),
      read: async (tx) =>
        (await (tx as typeof source.manager).findOneBy(Holder, { id: 'a' }))?.balance,
    }
  }
}

function drizzled(schema?: string): Make {
  return async () => {
    const pool = new Pool({ connectionString: fixture.database.url })
    atEnd(() => pool.end())
    const columns = { id: text('the_id').primaryKey(), balance: integer() }
    const holders =
      schema === undefined
        ? pgTable('Holders', columns)
        : pgSchema(schema).table('Holders', columns)
    const db = drizzle(pool)
    return {
      driver: fromDrizzle(db, sql) as Driver<unknown>,
      model: holders,
      read: async (tx) => {
        const found = await (tx as typeof db).select().from(holders).where(eq(holders.id, 'a'))
        return found[0]?.balance ?? undefined
      },
    }
  }
}

function prismatic(schema?: string): Make {
  return async () => {
    const { url: connectionString } = fixture.database
    const adapter = new PrismaPg({ connectionString }, schema === undefined ? {} : { schema })
    const prisma = new PrismaClient({ adapter })
    atEnd(() => prisma.$disconnect())
    return {
      driver: fromPrisma(prisma) as Driver<unknown>,
      model: prisma.holder,
      read: async (tx) =>
        (await (tx as typeof prisma).holder.findUnique({ where: { id: 'a' } }))?.balance,
    }
  }
}

const ways: Record<string, Record<string, Make>> = {
  MikroORM: {
    nowhere: mikro({}),
    'the entity': mikro({ entity: 'other' }),
    'the entity, to be the default one': mikro({ entity: 'public' }),
    'the configuration': mikro({ config: { schema: 'other' } }),
    'the configuration, to be the default one': mikro({ config: { schema: 'public' } }),
    'the root manager': mikro({ root: { schema: 'other' } }),
    'a fork': mikro({ fork: { schema: 'other' } }),
    'a fork, against the configuration': mikro({
      config: { schema: 'public' },
      fork: { schema: 'other' },
    }),
    'a fork, against the entity': mikro({ entity: 'other', fork: { schema: 'found' } }),
    'em.schema': mikro({ set: 'other' }),
    'a fork, of an entity with *': mikro({ entity: '*', fork: { schema: 'other' } }),
    'the configuration, of an entity with *': mikro({ entity: '*', config: { schema: 'other' } }),
    'nothing, of an entity with *': mikro({ entity: '*' }),
    'a fork with *': mikro({ config: { schema: 'other' }, fork: { schema: '*' } }),
  },
  Sequelize: {
    nowhere: sequelize({}),
    'the instance': sequelize({ options: { schema: 'other' } }),
    'its models': sequelize({ options: { define: { schema: 'other' } } }),
    'the model': sequelize({ model: { schema: 'other' } }),
    'the model, to be the default one': sequelize({ model: { schema: 'public' } }),
    'Model.schema()': sequelize({ as: 'other' }),
    'Model.schema(), against the model': sequelize({ model: { schema: 'found' }, as: 'other' }),
  },
  TypeORM: {
    nowhere: typeOrm(),
    'the entity': typeOrm('other'),
    'the entity, to be the default one': typeOrm('public'),
    'the source': typeOrm(undefined, { schema: 'other' }),
    'the source, to be the default one': typeOrm(undefined, { schema: 'public' }),
    'the source, against the entity': typeOrm('other', { schema: 'public' }),
    'the prefix of the source': typeOrm('other', { entityPrefix: '' }),
  },
  Drizzle: { nowhere: drizzled(), 'the table': drizzled('other') },
  Prisma: {
    nowhere: prismatic(),
    'the adapter': prismatic('other'),
    'the adapter, to be the default one': prismatic('public'),
  },
}

/** Reads which schema the call went to. */
type Method = (place: Place, hf: ReturnType<typeof createHoldfast<unknown>>) => Promise<Went>

interface Went {
  readonly orm: number | undefined
  readonly ours: number | undefined
}

const inOne =
  (
    call: (tx: unknown, place: Place, hf: Parameters<Method>[1]) => Promise<number | undefined>,
  ): Method =>
  async (place, hf) => {
    let went: Went | undefined
    const open = place.transaction ?? ((body) => hf.transaction(body))
    await open(async (tx) => {
      went = { orm: await place.read(tx), ours: await call(tx, place, hf) }
    })
    return went as Went
  }

const methods: Record<string, Method> = {
  'rows.lock': inOne(async (tx, { model }, hf) => {
    const { rows } = await hf.rows.lock<{ balance: number }>(tx, model, ['a'])
    const free = await Promise.all(schemas.map(isFree))
    // Of the three rows the one that was said to be locked is locked.
    return free.indexOf(false) === free.lastIndexOf(false) && !free[rows[0]?.balance ?? -1]
      ? rows[0]?.balance
      : -1
  }),
  'rows.lockTable': inOne(async (tx, { model }, hf) => {
    await hf.rows.lockTable(tx, model, 'share')
    const { rows } = await fixture.observer.query<{ schema: (typeof schemas)[number] }>(
      `SELECT relnamespace::regnamespace::text AS schema FROM pg_locks JOIN pg_class AS c ON c.oid = relation
       WHERE mode = 'ShareLock' AND relname = 'Holders'`,
    )
    return rows[0] && schemas.indexOf(rows[0].schema)
  }),
  'rows.updateVersioned': inOne(async (tx, { model }, hf) => {
    const update = { version: 1, set: {} }
    return (await hf.rows.updateVersioned<{ balance: number }>(tx, model, 'a', update)).balance
  }),
  // It opens its transactions itself: what only a manager of the caller's says cannot be known there.
  async 'rows.withVersionCheck'({ model, read }, hf) {
    return await hf.rows.withVersionCheck<{ balance: number }, number, Went>(model, 'a', {
      work: async ({ balance }) => balance,
      write: async (tx, { balance }, seen) => ({
        orm: await read(tx),
        ours: balance === seen ? balance : -1,
      }),
    })
  },
}

async function isFree(schema: string): Promise<boolean> {
  const free = `SELECT FROM ${schema}."Holders" FOR NO KEY UPDATE SKIP LOCKED`
  return (await fixture.observer.query(free)).rows.length === 1
}

describe.each(Object.keys(ways))('%s', (orm) => {
  describe.each(Object.entries(ways[orm] ?? {}))('the schema is said by %s', (_, make) => {
    test.each(Object.entries(methods))('%s goes to the table of the ORM', async (_name, method) => {
      await fixture.observer.query(
        schemas.map((schema) => `UPDATE ${schema}."Holders" SET version = 1`).join(';'),
      )
      const place = await make()
      const { orm: expected, ours } = await method(place, createHoldfast(place.driver))
      expect(expected).toBeTypeOf('number')
      expect(ours).toBe(expected)
    })
  })
})

test('a model of MikroORM with a client that is not MikroORM: told where it is, or refused', async () => {
  const hf = createHoldfast(fromPg(fixture.pool))
  const { model } = await mikro({ config: { schema: 'other' } })()
  const { model: told } = await mikro({ entity: 'other' })()
  await hf.transaction(async (tx) => {
    const refused = { code: 'OPTION_INVALID', details: { option: 'table' } }
    await expect(hf.rows.lock(tx, model, ['a'])).rejects.toMatchObject(refused)
    await expect(hf.rows.lockTable(tx, model, 'share')).rejects.toMatchObject(refused)
    const update = { version: 1, set: {} }
    await expect(hf.rows.updateVersioned(tx, model, 'a', update)).rejects.toMatchObject(refused)
    expect((await hf.rows.lock(tx, told, ['a'])).rows).toMatchObject([{ balance: 2 }])
  })
  const check = { work: async () => undefined, write: async () => undefined }
  await expect(hf.rows.withVersionCheck(model, 'a', check)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})
