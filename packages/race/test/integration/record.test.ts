/** One flow by itself. */
import { withClient } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { record, type Recording } from '../../src/record.ts'
import type { Flow } from '../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE seats (id int PRIMARY KEY, taken_by text);
      CREATE TABLE log (id serial PRIMARY KEY, what text);
      INSERT INTO seats VALUES (1), (2)`),
  )
})

const reserve: Flow = async ({ pool, flow }) => {
  const client = await pool.connect()
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  const { rows } = await client.query('SELECT taken_by FROM seats WHERE id = $1 FOR UPDATE', [1])
  await client.query('UPDATE seats SET taken_by = $1 WHERE id = 1', [flow])
  await client.query('COMMIT')
  client.release()
  await pool.query(`INSERT INTO log (what) VALUES ('reserved')`)
  return { before: rows[0].taken_by }
}

const kinds = ({ steps }: Recording): string[] => steps.map(({ kind }) => kind)

test('statements, footprints, transactions, locks, answer and lines', async () => {
  const recording = await record({ url, flow: reserve, name: 'alice', state: 'restore' })
  expect(kinds(recording)).toEqual(['begin', 'lock', 'write', 'commit', 'write'])
  const { steps, transactions, outcome, tables, server } = recording
  expect(steps[1]).toMatchObject({
    statements: ['SELECT taken_by FROM seats WHERE id = $1 FOR UPDATE'],
    parameters: ['1'],
    answer: { columns: ['taken_by'], rows: [[null]], rowCount: 1 },
    from: { file: expect.stringMatching(/record\.test\.ts$/), line: expect.any(Number) },
    transaction: 0,
    footprint: {
      isolation: 'repeatable read',
      // At this level the first query decides what all of the transaction sees.
      touches: [
        { object: 'public.seats#id=1', mode: 'lock' },
        { object: '*', mode: 'read' },
      ],
    },
  })
  expect(transactions).toMatchObject([
    { first: 0, last: 3, end: 'commit', autocommit: false, writes: ['public.seats#id=1'] },
    { first: 4, last: 4, end: 'commit', autocommit: true, writes: ['public.log'] },
  ])
  expect(outcome).toEqual({ kind: 'returned', value: '{"before":null}', said: 'accepted' })
  expect(tables.find(({ name }) => name === 'public.seats')?.rows).toContainEqual(['1', 'alice'])
  expect(server).toMatch(/^PostgreSQL 1/)
})

test('the flow runs once, and what it threw is an outcome', async () => {
  let runs = 0
  const { outcome, steps } = await record({
    url,
    flow: async ({ pool }) => {
      runs += 1
      await pool.query('INSERT INTO seats VALUES (1)')
    },
  })
  expect(runs).toBe(1)
  expect(outcome).toMatchObject({ kind: 'threw', sqlstate: '23505', said: 'refused' })
  expect(steps).toMatchObject([{ kind: 'write', answer: { error: { sqlstate: '23505' } } }])
})

test('a flow that sends nothing has no steps', async () => {
  const { steps, outcome } = await record({ url, flow: async () => 7 })
  expect([steps, outcome]).toEqual([[], { kind: 'returned', value: '7', said: 'accepted' }])
})

test('a flow that does not come to its end is no recording', async () => {
  await withClient(url, async (client) => {
    await client.query('BEGIN; LOCK TABLE seats')
    await expect(record({ url, flow: reserve, oracle: false })).rejects.toThrow(
      /record\(\) has no result: .* waits for a lock that another session holds/,
    )
  })
})

test.each(['localhost/test', 'http://localhost/test', ''])('the url %j is refused', async (bad) => {
  await expect(record({ url: bad, flow: reserve })).rejects.toThrow(/record\(\) needs/)
})
