/** F6 Which statements take the snapshot of a transaction: the server is asked, and the explorer has to say the same. */
import { withClient } from '@holdfast/testkit'
import { Client, type PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { inOrder } from '../../../src/search/policy.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE t (n int);
      CREATE TABLE q (n int);
      CREATE TABLE pad (n int);
      CREATE TABLE spare (n int);
      CREATE MATERIALIZED VIEW mv AS SELECT 1 AS n;
      CREATE PROCEDURE nothing() LANGUAGE plpgsql AS 'BEGIN NULL; END'`),
  )
})

const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ'

/** Before the transaction: a cursor, and a statement that is prepared. */
async function prepare(client: Pick<PoolClient, 'query'>): Promise<void> {
  await client.query('PREPARE ready AS SELECT 1')
  await client.query('BEGIN')
  await client.query('DECLARE held CURSOR WITH HOLD FOR SELECT 1')
  await client.query('COMMIT')
}

/** By experiment: what others commit after it is not to be seen. */
async function takes(text: string): Promise<boolean> {
  const client = new Client(url)
  await client.connect()
  try {
    await withClient(url, (other) => other.query('TRUNCATE t'))
    await prepare(client)
    await client.query(begin)
    await client.query(text)
    await withClient(url, (other) => other.query('INSERT INTO t VALUES (1)'))
    const { rows } = await client.query('SELECT count(*)::int AS n FROM t')
    return rows[0].n === 0
  } finally {
    await client.end()
  }
}

describe.each([
  'SHOW work_mem',
  'SET LOCAL work_mem = 65536',
  'RESET work_mem',
  'SAVEPOINT s',
  'LOCK TABLE spare',
  'TRUNCATE spare',
  'SET CONSTRAINTS ALL DEFERRED',
  'PREPARE made AS SELECT 1',
  'DEALLOCATE ready',
  'DEALLOCATE ALL',
  'CLOSE held',
  'CLOSE ALL',
  'DISCARD PLANS',
  'DISCARD SEQUENCES',
  'DISCARD TEMP',
  'DECLARE c CURSOR FOR SELECT 1',
  'FETCH held',
  'MOVE held',
  'EXPLAIN SELECT 1',
  'EXECUTE ready',
  'DO $$ BEGIN NULL; END $$',
  'CALL nothing()',
  'SELECT 1',
  'VALUES (1)',
])('%s', (text) => {
  test('is told as the server does it', async () => {
    const one: Flow = async ({ pool }) => {
      const client = await pool.connect()
      await prepare(client)
      await client.query(begin)
      await client.query(text)
      await client.query('SELECT count(*) FROM t')
      await client.query('ROLLBACK')
      client.release()
    }
    const runner = await createRunner({ url, flows: { one } })
    try {
      const { steps } = await runner.run(inOrder([0]))
      const everything = { object: '*', mode: 'read' }
      const first = steps.find(({ footprint }) =>
        footprint.touches.some((touch) => JSON.stringify(touch) === JSON.stringify(everything)),
      )
      const expected = (await takes(text)) ? text : 'SELECT count(*) FROM t'
      expect(first?.statements).toEqual([expected])
    } finally {
      await runner.close()
    }
  })
})

test('F6 a snapshot that DEALLOCATE takes is older than the lock', async () => {
  const pads = async (client: Pick<PoolClient, 'query'>): Promise<void> => {
    for (let index = 0; index < 8; index++) await client.query('SELECT n FROM pad')
  }
  const once =
    (start: string, first: readonly string[]): Flow =>
    async ({ pool }) => {
      const client = await pool.connect()
      try {
        await client.query(start)
        for (const text of first) await client.query(text)
        const { rows } = await client.query('SELECT count(*)::int AS n FROM q')
        if (rows[0].n === 0) await client.query('INSERT INTO q VALUES (1)')
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    }
  const early = once(begin, ['DEALLOCATE ALL', 'LOCK TABLE q IN EXCLUSIVE MODE NOWAIT'])
  const plain = once('BEGIN', ['LOCK TABLE q IN EXCLUSIVE MODE'])
  const { verdict } = await explore({
    url,
    onProgress: () => undefined,
    seed: ({ query }) => query('TRUNCATE q'),
    flows: {
      early: async (cx) => {
        await pads(cx.pool)
        await early(cx)
      },
      plain: async (cx) => {
        await plain(cx)
        await pads(cx.pool)
      },
    },
  })
  expect(verdict).toBe('race')
})
