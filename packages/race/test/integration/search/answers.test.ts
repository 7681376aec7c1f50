/** What is said about answers: which are compared, and with which words. */
import { withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { DatabaseContext } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE ev (id serial PRIMARY KEY, who text, part int);
      CREATE TABLE bid (id serial PRIMARY KEY, who text);
      CREATE TABLE prize (id int PRIMARY KEY, taken boolean NOT NULL)`),
  )
})

const seed = async ({ query }: DatabaseContext): Promise<void> => {
  await query('TRUNCATE ev, bid, prize RESTART IDENTITY')
  await query('INSERT INTO prize VALUES (1, false)')
}

type Work = (pool: Pool, who: string) => Promise<unknown>
const seeded = (work: Work): Promise<Report> =>
  explore({
    url,
    seed,
    onProgress: () => undefined,
    budget: { ms: 60_000 },
    flows: { a: ({ pool }) => work(pool, 'a'), b: ({ pool }) => work(pool, 'b') },
  })

test('X26: a refusal that some serial order gives is not told as one that none gives', async () => {
  const bid: Work = async (pool, who) => {
    await pool.query('INSERT INTO bid (who) VALUES ($1)', [who])
    const { rowCount } = await pool.query('SELECT who FROM bid')
    if (rowCount === 1) return { status: 201 }
    await pool.query('DELETE FROM bid WHERE who = $1', [who])
    return { status: 409 }
  }
  const { verdict, notes } = await seeded(bid)
  expect(verdict).toBe('race-free')
  const text = notes.map(({ message }) => message).join('\n')
  expect(text).not.toContain('in no serial order')
  expect(text).toMatch(
    /a returned \{"status":409\} and b returned \{"status":409\}.*no serial order gives both/,
  )
})
