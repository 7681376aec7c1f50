/** Without a seed: what the flows change has to be as it was. */
import { withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import type { DatabaseContext, Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE tally (id int PRIMARY KEY, n int NOT NULL);
      INSERT INTO tally VALUES (1, 0);
      CREATE TABLE bid (id serial PRIMARY KEY, who text)`),
  )
})

const look = (options: Omit<ExploreOptions, 'url'>): Promise<Report> =>
  explore({ url, onProgress: () => undefined, ...options })

type Work = (pool: Pool, who: string) => Promise<unknown>
const both = (work: Work): Readonly<Record<string, Flow>> => ({
  a: ({ pool }) => work(pool, 'a'),
  b: ({ pool }) => work(pool, 'b'),
})

describe('X21: without a seed, what the flows change has to be as it was before every run', () => {
  const add: Work = async (pool) => {
    const { rows } = await pool.query<{ n: number }>('SELECT n FROM tally WHERE id = 1')
    await pool.query('UPDATE tally SET n = $1 WHERE id = 1', [(rows[0]?.n ?? 0) + 1])
  }

  test('a lost update is not called free of races', async () => {
    const { verdict, trouble } = await look({ flows: both(add) })
    expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'seed-differs'])
    expect(trouble?.message).toMatch(/public\.tally\.n .*seed.*state: 'restore'/)
  })

  test('rows that stay are told as well', async () => {
    const insert: Work = (pool, who) => pool.query('INSERT INTO bid (who) VALUES ($1)', [who])
    expect((await look({ flows: both(insert) })).trouble?.kind).toBe('seed-differs')
  })

  test('an invariant is not held to what is left of the runs before', async () => {
    const invariant = async ({ query }: DatabaseContext): Promise<void> => {
      const [row] = await query('SELECT n FROM tally')
      if (Number(row?.['n']) > 20) throw new Error('more than twenty')
    }
    const { verdict, trouble } = await look({
      flows: both((pool) => pool.query('UPDATE tally SET n = n + 1')),
      oracle: false,
      invariant,
    })
    expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'seed-differs'])
  })

  test('with restored rows it is found', async () => {
    expect((await look({ state: 'restore', flows: both(add) })).verdict).toBe('race')
  })

  test('flows that leave everything as it was need no seed', async () => {
    const undone: Work = async (pool) => {
      const client = await pool.connect()
      await client.query('BEGIN')
      await client.query('UPDATE tally SET n = n + 1')
      await client.query('ROLLBACK')
      client.release()
    }
    expect((await look({ flows: both(undone) })).verdict).toBe('race-free')
  })
})
