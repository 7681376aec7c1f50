/** `state: 'clone'`: a copy of the whole database for every run. */
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'
import type { Flow } from '../../../src/run/options.ts'

instrument(pg)

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, async (client) => {
    await client.query(`
      CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL);
      INSERT INTO account VALUES (1, 100), (2, 0);
      CREATE MATERIALIZED VIEW total AS SELECT sum(n)::int AS n FROM account;
      CREATE TABLE always (n int);
      CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER always BEFORE INSERT ON always FOR EACH ROW EXECUTE FUNCTION nothing();
      ALTER TABLE always ENABLE ALWAYS TRIGGER always;
      SELECT lo_from_bytea(4711, 'before')`)
    await client.query(
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = "$user", public, "odd one"', current_database()); END $$`,
    )
  })
})

const look = (options: Omit<ExploreOptions, 'url' | 'state'>) =>
  explore({ url, state: 'clone', onProgress: () => undefined, ...options })

/** What rows cannot restore: a table, a materialized view, a large object, a trigger that is always there. */
const spoil: Flow = async ({ pool }) => {
  const { rows } = await pool.query('SELECT n FROM account WHERE id = 1')
  await pool.query('UPDATE account SET n = $1 WHERE id = 1', [rows[0].n - 30])
  await pool.query(
    `REFRESH MATERIALIZED VIEW total; SELECT lo_put(4711, 0, 'after.'); INSERT INTO always VALUES (1)`,
  )
}

async function contents(): Promise<unknown> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query(
      `SELECT (SELECT array_agg(a::text ORDER BY id) FROM account a) AS account, (SELECT n FROM total) AS total,
              convert_from(lo_get(4711), 'UTF8') AS large, (SELECT count(*)::int FROM always) AS always`,
    )
    return rows
  })
}

async function leftovers(): Promise<readonly string[]> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query(
      `SELECT datname FROM pg_database WHERE datname LIKE 'holdfast_race_%' ORDER BY 1`,
    )
    return rows.map(({ datname }) => String(datname))
  })
}

test('a race is found, the database is as it was, and no clone is left', async () => {
  const before = await contents()
  const { verdict, failure } = await look({ flows: { a: spoil, b: spoil } })
  expect([verdict, failure?.reproduced]).toEqual(['race', [5, 5]])
  expect(await contents()).toEqual(before)
  expect(await leftovers()).toEqual([])
})

test('a table that a flow makes is gone before the next run', async () => {
  const make: Flow = ({ pool, flow }) => pool.query(`CREATE TABLE of_${flow} (n int)`)
  const flows = { a: make, b: make }
  expect((await look({ flows })).verdict).toBe('race-free')
  // The control: rows are put back, and the tables stay.
  const other = (await testDatabase()).directUrl
  const restored = await explore({
    url: other,
    state: 'restore',
    onProgress: () => undefined,
    flows,
  })
  expect(restored.verdict).not.toBe('race-free')
})

describe('clients', () => {
  let pool: pg.Pool
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: url })
    await pool.query('SELECT 1')
  })
  afterAll(() => pool.end())

  test('a pool of a module is led to the clone, and back', async () => {
    const seen = new Set<string>()
    const add = async (): Promise<void> => {
      const { rows } = await pool.query(
        'SELECT n, current_database() AS db FROM account WHERE id = 2',
      )
      seen.add(rows[0].db)
      await pool.query('UPDATE account SET n = $1 WHERE id = 2', [rows[0].n + 1])
    }
    const { verdict } = await look({ flows: { a: add, b: add } })
    expect(verdict).toBe('race')
    expect([...seen]).toEqual([expect.stringMatching(/^holdfast_race_\w+_run$/)])
    const { rows } = await pool.query('SELECT n FROM account WHERE id = 2')
    expect(rows).toEqual([{ n: 0 }])
  })

  test('prepared statements, and settings of the database', async () => {
    const add: Flow = async ({ pool: own }) => {
      await own.query({
        name: 'add',
        text: 'UPDATE account SET n = n + $1 WHERE id = 2',
        values: [1],
      })
      return (await own.query('SHOW search_path')).rows[0].search_path
    }
    const { verdict, failure } = await look({
      flows: { a: add, b: add },
      invariant: async ({ outcomes, query }) => {
        const [row] = await query('SELECT n FROM account WHERE id = 2')
        if (row?.['n'] !== 2) throw new Error('not from the start')
        for (const end of Object.values(outcomes))
          if (end.kind !== 'returned' || end.value !== JSON.stringify('"$user", public, "odd one"'))
            throw new Error('another search_path')
      },
    })
    expect([verdict, failure?.message]).toEqual(['race-free', undefined])
  })
})

describe('what cannot be is refused by name', () => {
  const idle: Flow = ({ pool }) => pool.query('SELECT n FROM account')
  const flows = { a: idle, b: idle }

  test('somebody else is connected', async () => {
    // Not a client of pg, which would be under control.
    const colleague = postgres(url, { connection: { application_name: 'psql of a colleague' } })
    await colleague`SELECT 1`
    await expect(look({ flows })).rejects.toThrow(
      /while others are connected to it: psql of a colleague \(pid \d+\)/,
    )
    await colleague.end()
    expect(await leftovers()).toEqual([])
  })

  test('a role without CREATEDB', async () => {
    await withClient(url, (client) =>
      client.query(
        `DO $$ BEGIN CREATE ROLE race_clones_not LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`,
      ),
    )
    const weak = url.replace(/\/\/[^@]*@/, '//race_clones_not@')
    await expect(
      explore({ url: weak, state: 'clone', flows, onProgress: () => undefined }),
    ).rejects.toThrow(/needs a role with CREATEDB that owns the database/)
  })
})

test('what a dead process left is swept, what a living one uses is not', async () => {
  const dead = 'holdfast_race_00000000dead_run'
  const living = 'holdfast_race_0000000a11fe_run'
  const own = new URL(url)
  own.searchParams.set('application_name', 'holdfast-race 0000000a11fe')
  await withClient(own.href, async (client) => {
    await client.query(`CREATE DATABASE ${dead}`)
    await client.query(`CREATE DATABASE ${living}`)
  })
  const server = new URL(own)
  server.pathname = '/postgres'
  await withClient(server.href, async (client) => {
    const idle: Flow = ({ pool }) => pool.query('SELECT n FROM account')
    await look({ flows: { a: idle, b: idle } })
    expect(await leftovers()).toEqual([living])
    await client.query(`DROP DATABASE ${living}`)
  })
})
