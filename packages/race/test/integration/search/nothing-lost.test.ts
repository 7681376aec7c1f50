/**
 * Statements whose inside is easily lost sight of: each of them reads two tables one after the other, and the other flow
 * writes both in one transaction. Whoever sees only one of the rows was between the two, which no schedule can be.
 */
import { sample, withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE pad (x int);
      CREATE TABLE cfg (id int PRIMARY KEY, v int);
      CREATE TABLE t1 (id int PRIMARY KEY);
      CREATE TABLE t2 (id int PRIMARY KEY);
      CREATE TABLE out (r text);
      CREATE TABLE kept (r text);
      CREATE PROCEDURE work() LANGUAGE plpgsql AS $$
        DECLARE x int;
        BEGIN
          SELECT v INTO x FROM cfg WHERE id = 1;
          COMMIT;
          UPDATE cfg SET v = x + 1 WHERE id = 1;
          COMMIT;
        END $$;
      CREATE FUNCTION two() RETURNS text LANGUAGE plpgsql AS $$
        DECLARE x int; y int;
        BEGIN SELECT count(*) INTO x FROM t1; SELECT count(*) INTO y FROM t2; RETURN x || '/' || y; END $$;
      CREATE FUNCTION fail_with_two() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', two(); END $$;
      CREATE FUNCTION once() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t1); END $$;
      CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.r := two(); RETURN NEW; END $$;
      CREATE TRIGGER tell BEFORE INSERT ON out FOR EACH ROW EXECUTE FUNCTION tell();
      CREATE VIEW vw AS SELECT two() AS r;
      CREATE VIEW outer_vw AS SELECT r FROM vw;
      CREATE MATERIALIZED VIEW mv AS SELECT two() AS r;
      CREATE MATERIALIZED VIEW outer_mv AS SELECT r FROM outer_vw`),
  )
})

const seed = async ({ query }: { query(text: string): Promise<unknown> }): Promise<void> => {
  await query('TRUNCATE cfg, t1, t2, out, kept')
  await query('INSERT INTO cfg VALUES (1, 0)')
  await query('REFRESH MATERIALIZED VIEW mv')
  await query('REFRESH MATERIALIZED VIEW outer_mv')
}

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({ url, flows, seed, onProgress: () => undefined })

/** What is said of them, and whether it is because of what runs inside. */
async function told(flows: Readonly<Record<string, Flow>>): Promise<string> {
  const { verdict, notes } = await look(flows)
  return notes.some(({ kind }) => kind === 'several-statements') ? `${verdict}, several` : verdict
}

async function inTransaction<T>(
  { pool }: Parameters<Flow>[0],
  body: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const answer = await body(client)
    await client.query('COMMIT')
    return answer
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

const writer: Flow = (cx) =>
  inTransaction(cx, async (client) => {
    await client.query('INSERT INTO t1 VALUES (1)')
    await client.query('INSERT INTO t2 VALUES (1)')
  })

/** In one transaction; answers with what the last one answered. */
const reader =
  (...texts: readonly string[]): Flow =>
  (cx) =>
    inTransaction(cx, async (client) => {
      let rows: unknown
      for (const text of texts) ({ rows } = await client.query(text))
      return rows
    })

const alone =
  (text: string): Flow =>
  async ({ pool }) =>
    (await pool.query(text)).rows

describe('F1 a procedure that commits inside', () => {
  test.each([
    ['called', 'CALL work()'],
    ['called by a block', 'DO $$ BEGIN CALL work(); END $$'],
  ])('%s', async (_, text) => {
    expect(await told({ a: alone(text), b: alone(text) })).toBe('bounded, several')
  })

  test('has a lost update, sent one by one', async () => {
    const byHand: Flow = async ({ pool }) => {
      const { rows } = await pool.query('SELECT v FROM cfg WHERE id = 1')
      await pool.query('UPDATE cfg SET v = $1 WHERE id = 1', [rows[0].v + 1])
    }
    expect((await look({ a: byHand, b: byHand })).verdict).toBe('race')
  })
})

describe('F2 what depends on everything still runs several statements', () => {
  test.each<[string, Flow]>(
    sample([
      ['pg_notify beside a function', alone(`SELECT two() AS r, pg_notify('x', 'y')`)],
      [
        'pg_notify beside a trigger',
        alone(`INSERT INTO out VALUES ('') RETURNING r, pg_notify('x', 'y')`),
      ],
      [
        'CREATE TEMP TABLE AS',
        reader('CREATE TEMP TABLE zz ON COMMIT DROP AS SELECT two() AS r', 'SELECT r FROM zz'),
      ],
      [
        'SELECT INTO',
        reader('SELECT two() AS r INTO TEMP zz', 'SELECT r FROM zz', 'DROP TABLE zz'),
      ],
      ['REFRESH MATERIALIZED VIEW', alone('REFRESH MATERIALIZED VIEW mv')],
      ['REFRESH of a view of a view', alone('REFRESH MATERIALIZED VIEW outer_mv')],
      ['a view of a view', alone('SELECT r FROM outer_vw')],
      ['COPY of a query', alone('COPY (SELECT two()) TO STDOUT')],
      [
        'SQL as a value',
        alone(`SELECT query_to_xml('SELECT two() AS r', false, false, '')::text AS r`),
      ],
      [
        'ALTER TABLE with a default',
        reader(
          'ALTER TABLE kept ADD COLUMN added text DEFAULT two()',
          'ALTER TABLE kept DROP COLUMN added',
        ),
      ],
      [
        'an error that tells what it saw',
        async ({ pool }) => {
          const failure: unknown = await pool
            .query('SELECT fail_with_two()')
            .catch((error: unknown) => error)
          return (failure as Error).message
        },
      ],
    ]),
  )('%s', async (_, step) => {
    expect(await told({ step, writer })).toBe('bounded, several')
  })

  test.each([
    ['one statement inside', `SELECT once() AS r, pg_notify('x', 'y')`],
    ['no code at all', `SELECT count(*) AS r, pg_notify('x', 'y') FROM t1`],
    ['DDL without code', 'COMMENT ON TABLE kept IS NULL'],
  ])('but not %s', async (_, text) => {
    expect((await look({ step: alone(text), writer })).verdict).toBe('race-free')
  })
})

describe('F3 a statement that was prepared, or declared, before', () => {
  test.each<[string, Flow]>(
    sample([
      ['EXECUTE', reader('PREPARE p AS SELECT two() AS r', 'EXECUTE p')],
      [
        'EXECUTE with a function as parameter',
        reader('PREPARE p (text) AS SELECT $1 AS r', 'EXECUTE p (two())'),
      ],
      [
        'CREATE TABLE AS EXECUTE',
        reader(
          'PREPARE p AS SELECT two() AS r',
          'CREATE TEMP TABLE zz ON COMMIT DROP AS EXECUTE p',
          'SELECT r FROM zz',
        ),
      ],
      [
        'EXPLAIN ANALYZE EXECUTE',
        reader(
          `PREPARE p AS INSERT INTO kept SELECT two()`,
          'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) EXECUTE p',
        ),
      ],
      ['FETCH', reader('DECLARE c CURSOR FOR SELECT two() AS r', 'FETCH c')],
      [
        'the COMMIT of a cursor WITH HOLD',
        async ({ pool }) => {
          const client = await pool.connect()
          try {
            await client.query('BEGIN')
            await client.query('DECLARE c CURSOR WITH HOLD FOR SELECT two() AS r')
            await client.query('COMMIT')
            return (await client.query('FETCH c')).rows
          } finally {
            await client.query('CLOSE ALL')
            client.release()
          }
        },
      ],
    ]),
  )('%s', async (_, step) => {
    expect(await told({ step, writer })).toBe('bounded, several')
  })

  test.each<[string, Flow]>([
    ['EXECUTE of one statement', reader('PREPARE p AS SELECT once() AS r', 'EXECUTE p')],
    ['FETCH of a plain query', reader('DECLARE c CURSOR FOR SELECT count(*) FROM t1', 'FETCH c')],
  ])('but not %s', async (_, step) => {
    expect((await look({ step, writer })).verdict).toBe('race-free')
  })
})

test('F8 the DEFAULT of a domain reads another table', async () => {
  await withClient(url, (client) =>
    client.query(`
      CREATE FUNCTION next_one() RETURNS int LANGUAGE sql AS 'SELECT count(*)::int FROM t1';
      CREATE DOMAIN numbered AS int DEFAULT next_one();
      CREATE TABLE with_domain (id int PRIMARY KEY, n numbered)`),
  )
  const counts: Flow = (cx) =>
    inTransaction(cx, async (client) => {
      const { rows } = await client.query('SELECT count(*)::int AS n FROM t1')
      await client.query('INSERT INTO with_domain (id) VALUES (1)')
      return rows
    })
  const adds: Flow = (cx) =>
    inTransaction(cx, async (client) => {
      for (let id = 0; id < 4; id++) await client.query('INSERT INTO t1 VALUES ($1)', [id])
    })
  const { verdict } = await explore({
    url,
    flows: { counts, adds },
    onProgress: () => undefined,
    seed: async (database) => {
      await database.query('TRUNCATE with_domain')
      await seed(database)
    },
  })
  expect(verdict).toBe('race')
})
