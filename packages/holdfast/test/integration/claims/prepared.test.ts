import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Claims } from '../../../src/entries/claims.ts'
import { fromPg, type PgOptions } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { claimsFixture, ids, optionsFor, type Task } from '../../support/claims-fixture.ts'

/** Statements of claims are prepared by name where that is safe, and nobody notices but the server. */
const fixture = claimsFixture()

interface One {
  readonly pool: pg.Pool
  readonly claims: Claims<pg.PoolClient, Task>
  /** Query calls of the only connection: each is one round trip. */
  roundTrips(): number
}

/** A pool of one connection, so that every statement meets what the one before left there. */
function oneConnection(table: string, options: PgOptions = {}, config: pg.PoolConfig = {}): One {
  let calls = 0
  class CountingClient extends pg.Client {
    // oxlint-disable-next-line typescript/no-explicit-any -- pg's own overloads
    override query(...args: any[]): any {
      calls += 1
      return (super.query as (...all: unknown[]) => unknown).apply(this, args)
    }
  }
  const pool = new pg.Pool({
    connectionString: fixture.database.url,
    max: 1,
    Client: CountingClient as typeof pg.Client,
    ...config,
  })
  onTestFinished(() => pool.end())
  const claims = createHoldfast(fromPg(pool, options)).claims<Task>(optionsFor(table))
  return { pool, claims, roundTrips: () => calls }
}

/** Claims and completes `rounds` times; gives the ids in their order. */
async function work({ claims }: One, rounds = 3, limit = 1): Promise<number[]> {
  const done: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const mine = await claims.claim(limit)
    done.push(...ids(mine))
    expect((await claims.complete(mine)).lost).toEqual([])
  }
  return done
}

interface Prepared {
  readonly name: string
  readonly generic: number
}

async function prepared({ pool }: One): Promise<Prepared[]> {
  const { rows } = await pool.query<Prepared>(
    'SELECT name, generic_plans::int AS generic FROM pg_prepared_statements ORDER BY name',
  )
  return rows
}

test('on a direct connection, and never behind a pooler', async () => {
  const one = oneConnection((await fixture.table(10)).name)
  expect(await work(one)).toEqual([1, 2, 3])
  const names = (await prepared(one)).map(({ name }) => name)
  const ours = expect.stringMatching(/^holdfast_claims_[0-9a-f]{16}$/) as unknown
  expect(names).toEqual(fixture.database.throughPooler ? [] : [ours, ours])
})

test('costs one more round trip per connection', async () => {
  const one = oneConnection((await fixture.table(10)).name)
  await one.claims.claim()
  // What the types of the table's columns are compared by is asked for once, with what tells a pooler.
  expect(one.roundTrips()).toBe(2)
  await one.claims.claim()
  expect(one.roundTrips()).toBe(3)
  await work(one, 3)
  expect(one.roundTrips()).toBe(9)
})

test('can be switched off', async () => {
  const one = oneConnection((await fixture.table(10)).name, { prepare: 'never' })
  expect(await work(one)).toEqual([1, 2, 3])
  expect(await prepared(one)).toEqual([])
})

describe('what was prepared', () => {
  test.each(['DISCARD ALL', 'DEALLOCATE ALL'])('may be dropped: %s', async (drop) => {
    const one = oneConnection((await fixture.table(20)).name)
    await work(one)
    await one.pool.query(drop)
    expect(await work(one)).toEqual([4, 5, 6])
    await one.pool.query(drop)
    expect(await work(one)).toEqual([7, 8, 9])
    expect((await prepared(one)).length > 0).toBe(!fixture.database.throughPooler)
  })

  test('survives a change of the table, and the row has its new column', async () => {
    const { name } = await fixture.table(10)
    const one = oneConnection(name)
    await work(one)
    await fixture.observer.query(`ALTER TABLE ${name} ADD COLUMN colour text DEFAULT 'red'`)
    const [next] = await one.claims.claim()
    expect(next?.row).toMatchObject({ id: '4', colour: 'red' })
    await fixture.observer.query(
      `ALTER TABLE ${name} DROP COLUMN colour, ADD COLUMN colour jsonb DEFAULT '{}'`,
    )
    expect((await one.claims.claim())[0]?.row).toMatchObject({ id: '5', colour: {} })
    expect(await work(one)).toEqual([6, 7, 8])
  })

  test('an error of the statement is the caller’s, and the next one works', async () => {
    const { name } = await fixture.table(10)
    const one = oneConnection(name)
    await work(one)
    await fixture.observer.query(
      `ALTER TABLE ${name} ADD CONSTRAINT few CHECK (tries < 1) NOT VALID`,
    )
    for (let n = 0; n < 2; n += 1) {
      await expect(one.claims.claim()).rejects.toMatchObject({ code: '23514' })
    }
    await fixture.observer.query(`ALTER TABLE ${name} DROP CONSTRAINT few`)
    expect(await work(one)).toEqual([4, 5, 6])
  })

  test('is a few statements for claims of any size', async () => {
    const one = oneConnection((await fixture.table(700)).name)
    for (let limit = 1; limit <= 33; limit += 1) {
      expect(await work(one, 1, limit)).toHaveLength(limit)
    }
    // 1, 2, 4, … 64, to claim and to complete.
    expect((await prepared(one)).length).toBeLessThanOrEqual(14)
  })
})

test('a plan for any number of rows is made, once', async () => {
  const { name } = await fixture.table(5_000)
  await fixture.observer.query(`ANALYZE ${name}`)
  const one = oneConnection(name)
  await work(one, 12, 3)
  const plans = await prepared(one)
  expect(plans.map(({ generic }) => generic > 0)).toEqual(
    fixture.database.throughPooler ? [] : [true, true],
  )
})

test('rows are as the client reads them', async () => {
  const { name } = await fixture.table(10)
  await fixture.observer.query(`ALTER TABLE ${name}
    ADD COLUMN body jsonb DEFAULT '{"a":[1]}', ADD COLUMN empty text, ADD COLUMN flag boolean DEFAULT true,
    ADD COLUMN many int[] DEFAULT '{1,2}', ADD COLUMN price numeric DEFAULT 1.50`)
  const types = {
    getTypeParser: (oid: number, format?: 'text' | 'binary') =>
      oid === 1700 ? (text: string) => `price ${text}` : pg.types.getTypeParser(oid, format),
  } as typeof pg.types
  const one = oneConnection(name, {}, { types })
  const unlike = ['id', 'due', 'until', 'token', 'tries'] as const
  const seen: unknown[] = []
  for (let n = 0; n < 4; n += 1) {
    const [claim] = await one.claims.claim()
    const { rows } = await one.pool.query(`SELECT * FROM ${name} WHERE id = $1`, [claim?.row.id])
    expect(claim?.row).toEqual(rows[0])
    expect(rows[0].due).toBeInstanceOf(Date)
    seen.push(
      Object.fromEntries(Object.entries(rows[0]).filter(([key]) => !unlike.includes(key as 'id'))),
    )
  }
  expect(new Set(seen.map((row) => JSON.stringify(row))).size).toBe(1)
  expect(seen[3]).toMatchObject({
    price: 'price 1.50',
    body: { a: [1] },
    empty: null,
    many: [1, 2],
  })
})

test('no row is locked beyond those that are asked for', async () => {
  const { claims } = await fixture.table(8)
  const client = await fixture.pool.connect()
  onTestFinished(() => client.release())
  await client.query('BEGIN')
  // Three of a plan for four.
  expect(ids(await claims.claim(client, 3))).toEqual([1, 2, 3])
  expect(ids(await claims.claim(5))).toEqual([4, 5, 6, 7, 8])
  await client.query('COMMIT')
})
