/** A lock of somebody else's where not a flow but the explorer waits for it: in the seed, a restore, a check. */
import { withClient } from '@holdfast/testkit'
import { Client } from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL);
      CREATE TABLE other (id int PRIMARY KEY);
      INSERT INTO counter VALUES (1, 0), (2, 0)`),
  )
})

const add: Flow = ({ pool }) => pool.query('UPDATE counter SET n = n + 1 WHERE id = 1')

/** Explores while a session of another program has these locks. */
async function exploreBehind(lock: string, more: Partial<ExploreOptions>): Promise<Report> {
  const other = new Client({ connectionString: url, application_name: 'psql' })
  await other.connect()
  try {
    await other.query('BEGIN')
    await other.query(lock)
    return await explore({ url, flows: { a: add, b: add }, onProgress: () => undefined, ...more })
  } finally {
    await other.end()
  }
}

const row2 = 'SELECT FROM counter WHERE id = 2 FOR UPDATE'
const tableOther = 'LOCK TABLE other'

const cases: Readonly<Record<string, readonly [string, Partial<ExploreOptions>, RegExp]>> = {
  'the seed': [row2, { seed: ({ query }) => query('UPDATE counter SET n = 0') }, /^The seed waits/],
  'a seed that goes on after its error': [
    row2,
    { seed: ({ query }) => query('UPDATE counter SET n = 0').catch(() => undefined) },
    /^The seed waits/,
  ],
  'a seed with a client of its own': [
    row2,
    { seed: () => withClient(url, (client) => client.query('UPDATE counter SET n = 0')) },
    /^While the seed runs, .* waits/,
  ],
  'the snapshot of a restore': [tableOther, { state: 'restore' }, /^The snapshot waits/],
  'the look at the tables': [
    tableOther,
    { seed: ({ query }) => query('UPDATE counter SET n = 0 WHERE id = 1') },
    /^The look at the tables waits/,
  ],
  'the invariant': [
    tableOther,
    {
      seed: ({ query }) => query('UPDATE counter SET n = 0 WHERE id = 1'),
      oracle: { tables: ['counter'] },
      invariant: ({ query }) => query('SELECT FROM other'),
    },
    /^The invariant waits/,
  ],
}

test.each(Object.entries(cases))('%s', async (_, [lock, more, message]) => {
  const { verdict, trouble } = await exploreBehind(lock, { budget: { ms: 3_000 }, ...more })
  expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'external-blocker'])
  expect(trouble?.message).toMatch(message)
  expect(trouble?.message).toMatch(/psql \(pid \d+: (SELECT FROM counter|LOCK TABLE other)/)
})

test('a restore that would have to wait is told before anything is changed', async () => {
  const { verdict, trouble } = await exploreBehind(row2, { state: 'restore' })
  expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'external-blocker'])
  expect(trouble?.message).toMatch(/^The trial of the restore waits for a lock .*: psql/)
})

test('a restore: what it cannot put back is told', async () => {
  const other = new Client({ connectionString: url, application_name: 'psql' })
  await other.connect()
  let locked: Promise<unknown> | undefined
  const spoil: Flow = async ({ pool }) => {
    await (locked ??= other.query('BEGIN').then(() => other.query(row2)))
    await pool.query('UPDATE counter SET n = n + 1 WHERE id = 1')
  }
  try {
    const exploring = explore({
      url,
      state: 'restore',
      flows: { a: spoil, b: spoil },
      onProgress: () => undefined,
    })
    await expect(exploring).rejects.toThrow(
      /could not put the rows back.*a lock that another session holds: psql/,
    )
  } finally {
    await other.end()
  }
  // The next one is told what to do with it.
  await withClient(url, (client) => client.query('DROP SCHEMA holdfast_race_kept CASCADE'))
})

test('a seed that does not end is given up when the budget is spent', async () => {
  const { verdict, trouble } = await explore({
    url,
    seed: () => Promise.withResolvers().promise,
    flows: { a: add, b: add },
    budget: { ms: 100 },
    onProgress: () => undefined,
  })
  expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'seed-failed'])
  expect(trouble?.message).toMatch(/The seed did not end within 5 s.*budget\.ms/)
})

test('a lock that is given back in time is waited for', async () => {
  const other = new Client({ connectionString: url })
  await other.connect()
  await other.query('BEGIN')
  await other.query(row2)
  const soon = setTimeout(() => void other.query('ROLLBACK'), 700)
  const { verdict } = await explore({
    url,
    seed: ({ query }) => query('UPDATE counter SET n = 0'),
    flows: { a: add, b: add },
    onProgress: () => undefined,
  })
  clearTimeout(soon)
  await other.end()
  expect(verdict).toBe('race-free')
})
