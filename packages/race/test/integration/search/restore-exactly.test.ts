/** `state: 'restore'`: the rows that come back are the rows that were there, or nothing is begun. */
import { withClient } from '@holdfast/testkit'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import { RestoreError } from '../../../src/index.ts'
import type { Flow } from '../../../src/run/options.ts'

const quiet = { onProgress: () => undefined, state: 'restore' } as const

let url: string
beforeEach(async () => {
  url = (await testDatabase()).directUrl
})
afterEach(() => {
  vi.unstubAllEnvs()
})

const query = (text: string): Promise<Record<string, unknown>[]> =>
  withClient(url, async (client) => (await client.query(text)).rows)

const sent =
  (text: string): Flow =>
  async ({ pool }) =>
    void (await pool.query(text))

const kept = `SELECT to_regclass('holdfast_race_kept.tables') IS NOT NULL AS kept`

test('R1 values are the same, whatever the database says about how they are written', async () => {
  await query(`
    CREATE TABLE event (
      id int PRIMARY KEY, n int, at timestamptz, day date, lasts interval, price money, raw bytea, loose float8,
      xml xml, words text[], owner name)`)
  await query(`INSERT INTO event VALUES (
    1, 0, '2024-05-01 10:00+00', '2024-05-06', '-1 day 2 hours', 12.34, '\\x00ff', 0.1::float8 + 0.2, '<a/>b',
    ARRAY['NULL', NULL], 'é')`)
  await query(`
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET datestyle = ''SQL, DMY''', current_database());
      EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Kolkata''', current_database());
      EXECUTE format('ALTER DATABASE %I SET intervalstyle = ''sql_standard''', current_database());
      EXECUTE format('ALTER DATABASE %I SET bytea_output = ''escape''', current_database());
      EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -5', current_database());
      EXECUTE format('ALTER DATABASE %I SET xmloption = ''document''', current_database());
      EXECUTE format('ALTER DATABASE %I SET array_nulls = off', current_database());
    END $$`)
  const look = (): Promise<unknown> =>
    query(`
      SELECT n, extract(epoch FROM at)::text AS at, day - '2000-01-01'::date AS day, extract(epoch FROM lasts)::text AS lasts,
             price::numeric::text AS price, encode(raw, 'hex') AS raw, loose = 0.1::float8 + 0.2 AS exact, xml::text AS xml,
             cardinality(array_remove(words, NULL)) AS words, owner FROM event`)
  const before = await look()
  const flows = {
    a: sent('UPDATE event SET n = n + 1 WHERE id = 1'),
    b: sent('UPDATE event SET n = n + 2 WHERE id = 1'),
  }
  const { verdict } = await explore({ url, flows, ...quiet })
  expect(verdict).toBe('race-free')
  expect(await look()).toEqual(before)
})

describe('rows that cannot be put back', () => {
  const failure = (exploring: Promise<unknown>): Promise<RestoreError> =>
    exploring.then(
      () => Promise.reject(new Error('it was explored')),
      (error: unknown) => error as RestoreError,
    )

  test('R2 a CHECK that the rows have passed once, and do not any more', async () => {
    await query(
      'CREATE TABLE coupon (id int PRIMARY KEY, expires timestamptz CHECK (expires > now()))',
    )
    await query(`INSERT INTO coupon VALUES (1, clock_timestamp() + interval '200 ms')`)
    await setTimeout(300)
    const flow = vi.fn<Flow>(sent('DELETE FROM coupon'))
    const error = await failure(explore({ url, flows: { a: flow, b: flow }, ...quiet }))
    expect(error).toBeInstanceOf(RestoreError)
    expect(error).toMatchObject({ table: 'public.coupon', constraint: 'coupon_expires_check' })
    expect(error.message).toContain(`Nothing was changed. Use state: 'clone', or write a seed.`)
    expect(flow).not.toHaveBeenCalled()
    expect(await query('SELECT id FROM coupon')).toEqual([{ id: 1 }])
    expect(await query(kept)).toEqual([{ kept: false }])
  })

  test('R3 a CHECK of a domain that is NOT VALID', async () => {
    await query(
      'CREATE DOMAIN positive AS int; CREATE TABLE stock (id int PRIMARY KEY, n positive)',
    )
    await query('INSERT INTO stock VALUES (1, -5), (2, 1)')
    await query('ALTER DOMAIN positive ADD CONSTRAINT above_zero CHECK (VALUE > 0) NOT VALID')
    const flow = vi.fn<Flow>(sent('UPDATE stock SET n = 7 WHERE id = 2'))
    const error = await failure(explore({ url, flows: { a: flow, b: flow }, ...quiet }))
    expect(error).toMatchObject({ table: 'public.stock', constraint: 'above_zero' })
    expect(flow).not.toHaveBeenCalled()
    expect(await query('SELECT id, n FROM stock ORDER BY id')).toEqual([
      { id: 1, n: -5 },
      { id: 2, n: 1 },
    ])
  })

  test('a trigger that fires for those who restore', async () => {
    await query('CREATE TABLE log (n int)')
    await query(
      `CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    )
    await query('CREATE TRIGGER tell BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION tell()')
    await query('ALTER TABLE log ENABLE REPLICA TRIGGER tell')
    const flows = { a: sent('SELECT 1'), b: sent('SELECT 1') }
    const error = await failure(explore({ url, flows, ...quiet }))
    expect(error).toMatchObject({ table: 'public.log' })
  })

  test('R2 if that happens in the middle, they are kept, and come back as it is said', async () => {
    await query('CREATE TABLE coupon (id int PRIMARY KEY, code text)')
    await query(`INSERT INTO coupon VALUES (1, 'spring')`)
    // From now on the row is refused.
    const spoil: Flow = async ({ pool }) => {
      await pool.query('DELETE FROM coupon')
      await pool.query('ALTER TABLE coupon DROP CONSTRAINT IF EXISTS none')
      await pool.query('ALTER TABLE coupon ADD CONSTRAINT none CHECK (id < 0)')
    }
    const error = await failure(
      explore({ url, flows: { a: spoil, b: sent('SELECT 1') }, ...quiet }),
    )
    expect(error).toMatchObject({ table: 'public.coupon', constraint: 'none' })
    expect(error.message).toContain('drop the constraint none of public.coupon')
    expect(error.message).toContain('HOLDFAST_RACE_LEFTOVER=restore')
    expect(await query(kept)).toEqual([{ kept: true }])

    const calm = { a: sent('SELECT 1 FROM coupon'), b: sent('SELECT 1 FROM coupon') }
    vi.stubEnv('HOLDFAST_RACE_LEFTOVER', 'restore')
    const again = await failure(explore({ url, flows: calm, ...quiet }))
    expect(again).toMatchObject({ table: 'public.coupon', constraint: 'none' })
    expect(again.message).toContain('drop the constraint none of public.coupon')

    await query('ALTER TABLE coupon DROP CONSTRAINT none')
    await explore({ url, flows: calm, ...quiet })
    expect(await query('SELECT code FROM coupon')).toEqual([{ code: 'spring' }])
    expect(await query(kept)).toEqual([{ kept: false }])
  })
})

test('R1 nobody is blamed for a seed that there is not', async () => {
  await query('CREATE SEQUENCE turn; CREATE TABLE t (n int)')
  await query(`CREATE MATERIALIZED VIEW seen AS SELECT count(*) AS n FROM t`)
  const fill: Flow = async ({ pool }) => {
    await pool.query('INSERT INTO t VALUES (1)')
    await pool.query('REFRESH MATERIALIZED VIEW seen')
  }
  const { verdict, trouble } = await explore({ url, flows: { a: fill, b: fill }, ...quiet })
  expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'seed-differs'])
  expect(trouble?.message).toContain(`With state: 'restore' public.seen`)
})
