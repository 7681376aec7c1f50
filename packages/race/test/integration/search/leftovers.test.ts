/** F9 What code leaves in a session is not there in the next run: it would hide what the flows do. */
import { withClient } from '@holdfast/testkit'
import pg, { type Pool } from 'pg'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'

instrument(pg)

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE q (id int PRIMARY KEY);
      CREATE FUNCTION by_setting() RETURNS int LANGUAGE sql AS $$
        SELECT set_config('app.n', coalesce(nullif(current_setting('app.n', true), ''),
          (SELECT count(*)::text FROM q)), false)::int $$;
      CREATE FUNCTION by_local_setting() RETURNS int LANGUAGE sql AS $$
        SELECT set_config('app.local', (SELECT count(*)::text FROM q), true)::int $$;
      CREATE FUNCTION by_table() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN
          CREATE TEMP TABLE IF NOT EXISTS memo AS SELECT count(*)::int AS n FROM q;
          RETURN (SELECT n FROM memo);
        END $$;
      CREATE FUNCTION by_made_table() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE v int;
        BEGIN
          EXECUTE 'CREATE TEMP TABLE IF NOT EXISTS made_memo AS SELECT count(*)::int AS n FROM q';
          EXECUTE 'SELECT n FROM made_memo' INTO v;
          RETURN v;
        END $$;
      CREATE FUNCTION by_view_inside() RETURNS int LANGUAGE sql AS 'SELECT by_setting()';
      CREATE VIEW seen AS SELECT by_view_inside() AS n`),
  )
})

/** Check, then insert: one of two that begin at once is too many. */
async function enter(pool: Pool, text: string, id: number): Promise<string> {
  const { rows } = await pool.query<{ n: number }>(text)
  if ((rows[0]?.n ?? 0) >= 1) return 'full'
  await pool.query('INSERT INTO q VALUES ($1)', [id])
  return 'ok'
}

function look(text: string, poolOf: (pool: Pool) => Pool = (pool) => pool): Promise<Report> {
  return explore({
    url,
    seed: ({ query }) => query('TRUNCATE q'),
    onProgress: () => undefined,
    flows: {
      a: ({ pool }) => enter(poolOf(pool), text, 1),
      b: ({ pool }) => enter(poolOf(pool), text, 2),
    },
  })
}

describe('the sessions of the explorer are new where code may have left something', () => {
  test.each([
    ['a setting', 'SELECT by_setting() AS n'],
    ['a temporary table', 'SELECT by_table() AS n'],
    ['one that is made at run time', 'SELECT by_made_table() AS n'],
    ['a setting that a view makes', 'SELECT n FROM seen'],
  ])('%s', async (_, text) => {
    expect((await look(text)).verdict).toBe('race')
  })
})

describe('a client of the code under test keeps its sessions', () => {
  function ownPool(): Pool {
    const pool = new pg.Pool({ connectionString: url })
    onTestFinished(() => pool.end())
    return pool
  }

  test('what is left there costs the proof', async () => {
    const pool = ownPool()
    const { verdict, notes } = await look('SELECT by_setting() AS n', () => pool)
    expect(verdict).not.toBe('race-free')
    if (verdict === 'bounded')
      expect(notes.map(({ message }) => message).join()).toContain(
        'may leave something in its session',
      )
  })

  test('what is left there hides nothing if it is for the transaction only', async () => {
    const pool = ownPool()
    expect((await look('SELECT by_local_setting() AS n', () => pool)).verdict).toBe('race')
  })

  test('and code that leaves nothing costs nothing', async () => {
    const pool = ownPool()
    const { verdict } = await explore({
      url,
      seed: ({ query }) => query('TRUNCATE q'),
      onProgress: () => undefined,
      flows: {
        a: async () => (await pool.query('SELECT by_local_setting() AS n')).rows,
        b: async () => (await pool.query('INSERT INTO q VALUES (2)')).rowCount,
      },
    })
    expect(verdict).toBe('race-free')
  })
})
