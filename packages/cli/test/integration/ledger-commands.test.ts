/** What keeps the ledger true, on the command line. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createDatabase, withClient } from '@holdfast/testkit'
import { beforeAll, describe, expect, inject, test } from 'vitest'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href

interface Result {
  readonly code: number
  readonly out: string
  readonly err: string
}

let url: string

function holdfast(...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', fromSource, main, ...args],
      { env: { ...process.env, DATABASE_URL: url, HOLDFAST_SCHEMA: 'books' } },
      (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }),
    )
  })
}

/** One accepted debit, as an application would send it. */
const debit = `SELECT books.apply_one(books.bucket_of('k'), books.key_account('k', 'b', 'k'),
  books.key_account('k', 'b', 'k'), gen_random_uuid(), 'one', 2::smallint, 'b', 'k', 'k', 3, 10, 0,
  NULL, NULL, NULL, NULL, NULL)`

beforeAll(async () => {
  url = await createDatabase(inject('postgresUrl'))
  await holdfast('migrate')
  await withClient(url, (client) => client.query(debit))
})

describe('audit', () => {
  test('says that everything adds up, with progress on the other stream', async () => {
    const { code, out, err } = await holdfast('audit')
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^1 accounts and 1 movements, as of \S+: everything adds up\.\n$/),
    ])
    expect(err).toMatch(/100 %: 1 accounts, 1 movements, 0 problems\n$/)
    const json = await holdfast('audit', '--json')
    expect([json.code, json.err]).toEqual([0, ''])
    expect(JSON.parse(json.out)).toMatchObject({ accounts: 1, movements: 1, found: 0 })
  })

  test('exits with 1 and names what is wrong', async () => {
    const set = (debited: number): Promise<unknown> =>
      withClient(url, (client) => client.query(`UPDATE books.balance SET debited = ${debited}`))
    await set(1)
    const { code, out } = await holdfast('audit')
    await set(3)
    expect(code).toBe(1)
    expect(out).toMatch(/^projection: account \S+, book "b", key "k", movement 1\n/)
    expect(out).toMatch(/: 1 problem\.\n$/)
    expect((await holdfast('audit', '--list', 'many')).code).toBe(2)
  })
})

describe('maintain', () => {
  test('makes months, and drops nothing unless told to', async () => {
    const { code, out } = await holdfast('maintain', '--months-ahead', '14')
    expect([code, out]).toEqual([
      0,
      'Months made: 2; ready ahead: 14\nMonths dropped: none\nOperation ids forgotten: 0\nCalendar windows forgotten: 0\n',
    ])
  })

  test('drops what is old, and says so', async () => {
    await withClient(url, (client) =>
      client.query(`
        SELECT books.make_month((date_trunc('month', now() AT TIME ZONE 'UTC') - interval '4 months')::date);
        SET session_replication_role = replica;
        UPDATE books.movement SET at = at - interval '4 months';
        UPDATE books.operation SET at = at - interval '4 months';
        UPDATE books.balance SET moved_at = moved_at - interval '4 months'`),
    )
    const { code, out, err } = await holdfast('maintain', '--keep-months', '3')
    expect([code, out]).toEqual([0, expect.stringMatching(/Months dropped: \d{4}-\d\d\n/)])
    expect(err).toMatch(/dropped; 1 accounts have a checkpoint/)
    expect((await holdfast('audit')).code).toBe(0)
  })

  test('refuses what cannot be meant', async () => {
    const { code, err } = await holdfast('maintain', '--operation-horizon', '5 min')
    expect(code).toBe(2)
    expect(err).toMatch(/^--operation-horizon must be a day at least, beyond any retry\.\n/)
    expect((await holdfast('maintain', '--keep-months', '0')).err).toMatch(/^--keep-months must/)
  })
})
