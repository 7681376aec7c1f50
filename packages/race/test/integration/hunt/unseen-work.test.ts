/** What the explorer does not see, or cannot know, refutes and proves nothing: the report says what it was. */
import { setTimeout } from 'node:timers/promises'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { hunt, type HuntReport, instrument } from '../../../src/hunt.ts'
import type { SuiteContext } from '../../../src/hunt/record/open-recording.ts'

instrument(pg)

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE codes (code text PRIMARY KEY, uses int NOT NULL);
      INSERT INTO codes VALUES ('A', 0);
      CREATE TABLE pages (id int PRIMARY KEY, body text NOT NULL, version int NOT NULL);
      INSERT INTO pages VALUES (1, 'a', 1);
      CREATE TABLE mails (id serial PRIMARY KEY)`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

const verdicts = ({ pairs }: HuntReport): unknown[] =>
  pairs.map(({ name, verdict, because }) => [name, verdict, ...(because ? [because] : [])])

test('a pair whose check and write are sent by another client is not refuted', async () => {
  const sql = postgres(url, { max: 4 })
  const use = async (code: string): Promise<object> => {
    await pool.query('SELECT code FROM codes WHERE code = $1', [code])
    const [row] = await sql`SELECT uses FROM codes WHERE code = ${code}`
    await sql`UPDATE codes SET uses = ${Number(row?.['uses']) + 1} WHERE code = ${code}`
    await pool.query('UPDATE codes SET code = code WHERE code = $1', [code])
    return { used: code }
  }
  try {
    const report = await hunt({ url, suite: ({ call }) => call('use', use, 'A') })
    expect(verdicts(report)).toEqual([
      ['use × itself', 'undecided', expect.stringContaining('another client has sent statements')],
    ])
  } finally {
    await sql.end()
  }
  // The control: by pg alone it is seen, although a client of the suite is idle beside it.
  const idle = new pg.Client({ connectionString: url })
  await idle.connect()
  const count = async (code: string): Promise<object> => {
    await pool.query('UPDATE codes SET uses = uses + 1 WHERE code = $1', [code])
    return { counted: code }
  }
  const seen = await hunt({ url, suite: ({ call }) => call('count', count, 'A') })
  await idle.end()
  expect(verdicts(seen)).toEqual([['count × itself', 'refuted']])
})

test('a call that goes on after its answer is named', async () => {
  let over = Promise.resolve()
  const later = async (): Promise<void> => {
    await setTimeout(100)
    const { rows } = await pool.query(`SELECT uses FROM codes WHERE code = 'A'`)
    await pool.query(`UPDATE codes SET uses = $1 WHERE code = 'A'`, [rows[0].uses + 1])
  }
  const mail = async (): Promise<object> => {
    await pool.query('SELECT id FROM mails')
    over = later().catch(() => undefined)
    return { mailed: true }
  }
  const report = await hunt({
    url,
    suite: async ({ call }) => {
      await call('mail', mail)
      await over
    },
  })
  expect(report.notes).toContainEqual(expect.stringMatching(/^mail goes on after it has answered/))
})

const save =
  (checks: boolean) =>
  async (id: number, body: string): Promise<object> => {
    const { rows } = await pool.query('SELECT version FROM pages WHERE id = $1', [id])
    const seen = checks ? ' AND version = $3' : ''
    const { rowCount } = await pool.query(
      `UPDATE pages SET body = $2, version = ${checks ? 'version' : '$3::int'} + 1 WHERE id = $1${seen}`,
      [id, body, rows[0].version],
    )
    return { result: rowCount === 1 ? 'saved' : 'conflict' }
  }

test('an answer that only a race gives may say no: it is asked about, and known once it is told', async () => {
  const suite = ({ call }: SuiteContext): Promise<object> => call('save', save(true), 1, 'b')
  expect(verdicts(await hunt({ url, suite }))).toEqual([
    ['save × itself', 'undecided', expect.stringContaining(`--refused 'result=conflict'`)],
  ])
  expect(verdicts(await hunt({ url, refused: ['result=conflict'], suite }))).toEqual([
    ['save × itself', 'refuted'],
  ])
  expect(verdicts(await hunt({ url, refused: ['result=never'], suite }))).toEqual([
    ['save × itself', 'proven'],
  ])
  // The control: a lost update answers as ever, and is one.
  const lost = await hunt({ url, suite: ({ call }) => call('save', save(false), 1, 'b') })
  expect(verdicts(lost)).toEqual([['save × itself', 'proven']])
})

test('calls after the last one that is kept are counted', async () => {
  const count = (): Promise<object> => pool.query(`UPDATE codes SET uses = uses + 1`)
  const report = await hunt({
    url,
    budget: { calls: 1 },
    suite: async ({ call }) => {
      for (const name of ['one', 'two', 'three']) await call(name, count)
    },
  })
  expect(report.calls).toHaveLength(1)
  expect(report.notes).toContain('2 calls came after the first 1, and only these are kept')
})
