/** `state: 'restore'`: the database as it is, without a seed. */
import { withClient } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

/** Types and shapes that a careless copy loses. */
const tables = `
  CREATE SCHEMA "Odd ""one";
  CREATE TYPE mood AS ENUM ('low', 'high');
  CREATE TYPE pair AS (one int, other text);
  CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE "Odd ""one"."Ta ble" (
    "Key" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data jsonb, words text[], feeling mood, couple pair, raw bytea, exact numeric, loose float8, at timestamptz,
    span tsrange, gone int, twice int GENERATED ALWAYS AS (cardinality(words) * 2) STORED,
    parent bigint REFERENCES "Odd ""one"."Ta ble" ("Key"));
  ALTER TABLE "Odd ""one"."Ta ble" DROP COLUMN gone;
  INSERT INTO "Odd ""one"."Ta ble" (data, words, feeling, couple, raw, exact, loose, at, span, parent) VALUES
    ('null', ARRAY['a,"b', NULL, ''], 'high', '(1,"x,y")', '\\x00ff', 'NaN', '-Infinity', 'infinity', '[,)', 2),
    (NULL, '{}', NULL, NULL, '', 0.10, 0.1::float8 + 0.2, '2024-02-29 12:00:00.123456+05:30', 'empty', 1);
  CREATE TABLE event (id serial, at date) PARTITION BY RANGE (at);
  CREATE TABLE event_2024 PARTITION OF event FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
  INSERT INTO event (at) VALUES ('2024-05-01');
  CREATE TABLE base (n int);
  CREATE TABLE heir (m int) INHERITS (base);
  INSERT INTO base VALUES (1);
  INSERT INTO heir VALUES (2, 3);
  CREATE SEQUENCE never;
  CREATE SEQUENCE used;
  SELECT nextval('used');
  CREATE TABLE log (what text);
  CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO log VALUES (TG_OP); RETURN NULL; END $$;
  CREATE TRIGGER noted AFTER INSERT OR DELETE ON account FOR EACH ROW EXECUTE FUNCTION noted();
  INSERT INTO account VALUES (1, 100), (2, 100);
`

/** Everything that is there, as text. */
async function contents(url: string): Promise<readonly unknown[]> {
  return await withClient(url, async (client) => {
    const found: unknown[] = []
    for (const table of ['account', '"Odd ""one"."Ta ble"', 'event', 'ONLY base', 'heir', 'log']) {
      const { rows } = await client.query(`SELECT t::text AS row FROM ${table} t ORDER BY 1`)
      found.push([table, rows])
    }
    const { rows } = await client.query('SELECT sequencename, last_value FROM pg_sequences')
    return [...found, rows]
  })
}

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query(tables))
})

const quiet = { onProgress: () => undefined }

/** Touches every table, and takes from an account what may no longer be there. */
const spoil: Flow = async ({ pool }) => {
  const { rows } = await pool.query<{ n: number }>('SELECT n FROM account WHERE id = 1')
  await pool.query('UPDATE account SET n = $1 WHERE id = 1', [(rows[0]?.n ?? 0) - 30])
  await pool.query('DELETE FROM account WHERE id = 2')
  await pool.query(`UPDATE "Odd ""one"."Ta ble" SET data = '{}', words = '{}', parent = NULL`)
  await pool.query('DELETE FROM "Odd ""one"."Ta ble" WHERE data IS NOT NULL')
  await pool.query(`INSERT INTO event (at) VALUES ('2024-07-01')`)
  await pool.query('DELETE FROM base')
  await pool.query(`SELECT nextval('used'), nextval('never')`)
}

test('a race is found without a seed, and everything is as it was afterwards', async () => {
  const before = await contents(url)
  const { verdict, failure } = await explore({
    url,
    state: 'restore',
    flows: { a: spoil, b: spoil },
    ...quiet,
  })
  expect([verdict, failure?.reproduced]).toEqual(['race', [5, 5]])
  expect(await contents(url)).toEqual(before)
})

test('the control: without it the first run changes what the others begin with', async () => {
  const before = await contents(url)
  const report = await explore({
    url,
    flows: { a: spoil, b: spoil },
    budget: { ms: 3_000 },
    ...quiet,
  })
  expect(await contents(url)).not.toEqual(before)
  expect(report.verdict).not.toBe('race-free')
})

test('a seed runs on what was restored', async () => {
  const take: Flow = ({ pool }) =>
    pool.query('UPDATE account SET n = n - 1 WHERE id = 7 AND n >= 1')
  const { verdict } = await explore({
    url,
    state: 'restore',
    seed: ({ query }) => query('INSERT INTO account VALUES (7, 1)'),
    flows: { a: take, b: take },
    ...quiet,
  })
  expect(verdict).toBe('race-free')
  expect(JSON.stringify(await contents(url))).not.toContain('(7,1)')
})

test('a role that may not restore is told so', async () => {
  await withClient(url, async (client) => {
    await client.query(`CREATE TABLE shared (n int); INSERT INTO shared VALUES (1)`)
    await client.query(
      `DO $$ BEGIN CREATE ROLE race_weak LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`,
    )
    await client.query('GRANT ALL ON ALL TABLES IN SCHEMA public, "Odd ""one" TO race_weak')
    await client.query('GRANT ALL ON ALL SEQUENCES IN SCHEMA public, "Odd ""one" TO race_weak')
    await client.query('GRANT USAGE ON SCHEMA "Odd ""one" TO race_weak')
  })
  const weak = url.replace(/\/\/[^@]*@/, '//race_weak@')
  const add: Flow = ({ pool }) => pool.query('UPDATE shared SET n = n + 1')
  const exploring = explore({ url: weak, state: 'restore', flows: { a: add, b: add }, ...quiet })
  await expect(exploring).rejects.toThrow(/may set session_replication_role/)
})
