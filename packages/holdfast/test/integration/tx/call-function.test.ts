import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { functionCall } from '../../../src/engines/postgres/sql/function-call.ts'
import { createHoldfast } from '../../../src/index.ts'
import {
  callFunction,
  needingSchema,
  needingTables,
  sumOverPrimaries,
} from '../../../src/engines/postgres/sql/call-function.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

/** Calls of our functions, by one that is made here: in a transaction of the caller's, outside of one, and alone. */
const fixture = pgFixture(`
  CREATE TABLE called (text text);
  CREATE FUNCTION call_me(p_text text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO called VALUES (p_text); RETURN pg_catalog.upper(p_text); END $$;
  CREATE FUNCTION count_me() RETURNS integer LANGUAGE sql AS 'SELECT 7';
  CREATE FUNCTION end_me() RETURNS text LANGUAGE sql AS 'SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())::pg_catalog.text'`)

const call = (text: string) => functionCall('public', 'call_me', [['text', text]])
const outside = 'ONCE_OUTSIDE_TRANSACTION'

async function called(text: string): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM called WHERE text = $1', [text])
  return rows.length
}

interface Opened {
  readonly driver: Driver<never>
  /** A handle that is in no transaction. */
  readonly root: unknown
  begun<T>(use: (tx: unknown) => Promise<T>): Promise<T>
}

/** Of those that know whether they are in a transaction, and that do not, sending one by one or together. */
const clients: Readonly<Record<string, () => Promise<Opened>>> = {
  async pg() {
    const root = await fixture.pool.connect()
    onTestFinished(() => root.release())
    return {
      driver: fromPg(fixture.pool) as unknown as Driver<never>,
      root,
      async begun(use) {
        await root.query('BEGIN')
        const result = await use(root)
        await root.query('COMMIT')
        return result
      },
    }
  },
  async 'postgres.js'() {
    const sql = postgres(fixture.database.url, { max: 2, prepare: false })
    onTestFinished(async () => await sql.end())
    return {
      driver: fromPostgresJs(sql) as unknown as Driver<never>,
      root: sql,
      begun: async <T>(use: (tx: unknown) => Promise<T>) =>
        (await sql.begin(async (tx) => [await use(tx)]))[0] as T,
    }
  },
  async kysely() {
    const db = new Kysely<unknown>({
      dialect: new PostgresDialect({
        pool: new pg.Pool({ connectionString: fixture.database.url, max: 2 }),
      }),
    })
    onTestFinished(async () => await db.destroy())
    return {
      driver: fromKysely(db) as unknown as Driver<never>,
      root: db,
      begun: async (use) => await db.transaction().execute(use),
    }
  },
}

/** As older clients of `pg` are: they do not say whether they are in a transaction. */
function silent(client: unknown): unknown {
  return new Proxy(client as pg.PoolClient, {
    get(target, name) {
      if (name === 'getTransactionStatus') return undefined
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

test.each([false, true])('a handle that cannot tell, pipelining %s', async (pipelines) => {
  const { driver: known, root, begun } = await (clients['pg'] as () => Promise<Opened>)()
  const driver = { ...known, capabilities: { ...known.capabilities, pipelines } }
  const text = `silent ${pipelines}`
  const refused = callFunction(driver, silent(root) as never, call(text), outside)
  await expect(refused).rejects.toMatchObject({ code: outside })
  expect(await called(text)).toBe(0)
  const answer = await begun(
    async (tx) => await callFunction(driver, silent(tx) as never, call(text), outside),
  )
  expect([answer, await called(text)]).toEqual([text.toUpperCase(), 1])
})

describe.each(Object.entries(clients))('%s', (name, open) => {
  test('in a transaction of the caller’s it is part of it', async () => {
    const { driver, begun } = await open()
    const text = `${name} in`
    const seen = await begun(async (tx) => {
      const answer = await callFunction(driver, tx as never, call(text), outside)
      return [answer, await called(text)]
    })
    expect(seen).toEqual([text.toUpperCase(), 0])
    expect(await called(text)).toBe(1)
  })

  test('with a handle that is in none it does nothing, and says so', async () => {
    const { driver, root } = await open()
    const text = `${name} none`
    const refused = callFunction(driver, root as never, call(text), outside)
    await expect(refused).rejects.toMatchObject({ code: outside })
    expect(await called(text)).toBe(0)
  })

  test('alone it is a transaction of its own', async () => {
    const { driver } = await open()
    const text = `${name} alone`
    expect(await callFunction(driver, undefined, call(text), outside)).toBe(text.toUpperCase())
    expect(await called(text)).toBe(1)
  })
})

test('what is lost in the caller’s transaction has no outcome of its own', async () => {
  const { driver, root, begun } = await (clients['pg'] as () => Promise<Opened>)()
  ;(root as pg.PoolClient).on('error', () => undefined)
  const dying = functionCall('public', 'end_me', [])
  const lost = begun(async (tx) => await callFunction(driver, tx as never, dying, outside))
  const error: unknown = await lost.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(Error)
  expect(error).not.toMatchObject({ code: 'COMMIT_UNKNOWN' })
})

test('alone, a lost answer is an outcome that is unknown', async () => {
  const dying = functionCall('public', 'end_me', [])
  await expect(callFunction(fromPg(fixture.pool), undefined, dying, outside)).rejects.toMatchObject(
    { code: 'COMMIT_UNKNOWN' },
  )
})

test('inside a transaction of ours it is not called on a second connection', async () => {
  const driver = fromPg(fixture.pool)
  const hf = createHoldfast(driver)
  const count = functionCall('public', 'count_me', [])
  const nested: (() => Promise<unknown>)[] = [
    () => callFunction(driver, undefined, call('nested'), outside),
    () => sumOverPrimaries(driver, count),
  ]
  for (const calling of nested)
    await expect(hf.tx.run(calling)).rejects.toMatchObject({ code: 'TX_NESTED' })
  expect(await called('nested')).toBe(0)
})

test('over all primaries it is added up', async () => {
  const count = functionCall('public', 'count_me', [])
  expect(await sumOverPrimaries(fromPg(fixture.pool), count)).toBe(7)
})

test('no text is no answer', async () => {
  const nothing = functionCall('public', 'call_me', [['text', null]])
  expect(await callFunction(fromPg(fixture.pool), undefined, nothing, outside)).toBe(null)
})

describe('a database in which our schema is not', () => {
  const driver = () => fromPg(fixture.pool)
  const ask = (text: string) => driver().alone.query({ text, values: [] })

  test('is told by every call, with what the server said', async () => {
    for (const missing of [
      () => callFunction(driver(), undefined, functionCall('nowhere', 'call_me', []), outside),
      () => callFunction(driver(), undefined, functionCall('public', 'not_made', []), outside),
      () => sumOverPrimaries(driver(), functionCall('public', 'not_made', [])),
      () => needingSchema(ask('SELECT nowhere.call_me()')),
      () => needingTables(ask('SELECT nowhere.call_me()')),
      () => needingTables(ask('SELECT FROM not_made')),
    ])
      await expect(missing()).rejects.toMatchObject({
        code: 'SCHEMA_MISSING',
        cause: { code: expect.stringMatching(/^(3F000|42883|42P01)$/) },
      })
  })

  test('is not told of other errors, nor of tables where there are none of ours', async () => {
    for (const other of [
      () => needingSchema(ask('SELECT FROM not_made')),
      () => needingTables(ask('SELECT 1/0')),
      () => needingSchema(ask('SELECT 1/0')),
    ])
      await expect(other()).rejects.toMatchObject({
        code: expect.stringMatching(/^(42P01|22012)$/),
      })
    expect(await needingTables(ask('SELECT 1 AS one'))).toEqual([{ one: 1 }])
  })
})
