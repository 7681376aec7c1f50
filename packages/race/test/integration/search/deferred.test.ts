/** What is done at COMMIT: triggers that were put off until then. */
import { withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, expect, test } from 'vitest'
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
      CREATE TABLE a (id int PRIMARY KEY);
      CREATE TABLE b (id int PRIMARY KEY);
      CREATE TABLE c (id int PRIMARY KEY);
      CREATE TABLE audit (n int);
      CREATE FUNCTION au() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO audit SELECT count(*) FROM b; RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER ta AFTER INSERT ON a DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION au();
      CREATE FUNCTION au_twice() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO audit SELECT count(*) FROM b;
          INSERT INTO audit SELECT 10 + count(*) FROM b;
          RETURN NULL;
        END $$;
      CREATE CONSTRAINT TRIGGER tc AFTER INSERT ON c DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION au_twice()`),
  )
})

const seed = ({ query }: { query(text: string): Promise<unknown> }): Promise<unknown> =>
  query('TRUNCATE a, b, c, audit')

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({ url, flows, seed, onProgress: () => undefined, budget: { ms: 60_000 } })

/** Enough of them that no random order is likely to be the one. */
async function pads(client: Pick<PoolClient, 'query'>): Promise<void> {
  for (let index = 0; index < 8; index++) await client.query('SELECT x FROM pad')
}

const transaction =
  (...texts: readonly string[]): Flow =>
  async ({ pool }) => {
    const client = await pool.connect()
    try {
      await pads(client)
      await client.query('BEGIN')
      for (const text of texts) await client.query(text)
      await client.query('COMMIT')
    } finally {
      client.release()
    }
  }

const twoOfB: Flow = async ({ pool }) => {
  await pool.query('INSERT INTO b VALUES (1)')
  await pool.query('INSERT INTO b VALUES (2)')
  await pads(pool)
}

test('F4 a deferred trigger reads another table at COMMIT', async () => {
  const { verdict } = await look({ a: transaction('INSERT INTO a VALUES (1)'), b: twoOfB })
  expect(verdict).toBe('race')
})

test('F4 or when it is told to', async () => {
  const now = transaction('INSERT INTO a VALUES (1)', 'SET CONSTRAINTS ALL IMMEDIATE')
  expect((await look({ a: now, b: twoOfB })).verdict).toBe('race')
})

test('F4 two statements of a deferred trigger have others between them', async () => {
  const insertB: Flow = async ({ pool }) => void (await pool.query('INSERT INTO b VALUES (1)'))
  const { verdict, notes } = await look({ c: transaction('INSERT INTO c VALUES (1)'), b: insertB })
  expect(verdict).toBe('bounded')
  const several = notes.filter(({ kind }) => kind === 'several-statements')
  expect(several.map(({ message }) => message)).toContainEqual(expect.stringContaining(': COMMIT'))
})

test('F4 what has nothing to do with it is race-free', async () => {
  const { verdict } = await look({
    a: transaction('INSERT INTO a VALUES (1)'),
    pad: ({ pool }) => pads(pool),
  })
  expect(verdict).toBe('race-free')
})
