/** What keeps the ledger true, on the command line. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

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
  url = (await testDatabase()).directUrl
  await holdfast('migrate')
  await withClient(url, (client) => client.query(debit))
})

describe('books', () => {
  test('are listed, and declared anew if told to', async () => {
    const said = ['ledger', 'redeclare', 'calls', '--as', 'quota', '--per', 'month']
    const preview = await holdfast(...said, '--new')
    expect(preview).toMatchObject({ code: 3, out: expect.stringContaining('nothing yet') })
    expect((await holdfast('ledger', 'books')).out).toBe('No book was used yet.\n')
    expect(await holdfast(...said, '--new', '--yes')).toMatchObject({ code: 0 })
    const again = await holdfast('ledger', 'redeclare', 'calls', '--as', 'credits', '--json')
    expect(JSON.parse(again.out)).toEqual({
      book: 'calls',
      before: { as: 'quota', per: 'month', timeZone: 'UTC', amounts: 'number' },
      after: { as: 'credits', amounts: 'number' },
      done: false,
    })
    const { out } = await holdfast('ledger', 'books')
    expect(out).toMatch(/^book\s+is\s+declared with\s+since\ncalls\s+quota\s+.*timeZone UTC/)
  })

  test('are not declared as what they cannot be', async () => {
    const wrong = await holdfast('ledger', 'redeclare', 'calls', '--as', 'quota', '--per', 'year')
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('per must be one of') })
    expect(await holdfast('ledger', 'redeclare', 'calls')).toMatchObject({ code: 2 })
    const quota = ['ledger', 'redeclare', 'calls', '--as', 'quota']
    const half = await holdfast(...quota)
    expect(half.err).toMatch(
      /^--as: a quota, and nothing else, has one of per, rolling and rate\.\n/,
    )
    const zoned = [...quota, '--per', 'month', '--time-zone', 'CET']
    expect((await holdfast(...zoned)).err).toMatch(/^--time-zone: CET may mean another zone/)
    expect(await holdfast('ledger', 'show', 'calls')).toMatchObject({ code: 2 })
  })
})

describe('reports', () => {
  test('list keys, page by page', async () => {
    const { out } = await holdfast('ledger', 'keys', 'b')
    expect(out).toMatch(/^key\s+scope\s+available.*\nk\s+7\s+0\s+3\s+0/)
    const json = await holdfast('ledger', 'keys', 'b', '--limit', '1', '--json')
    const page = JSON.parse(json.out)
    expect(page).toMatchObject({ keys: [{ key: 'k', available: '7' }], next: '[0,"k"]' })
    const after = await holdfast('ledger', 'keys', 'b', '--after', page.next)
    expect(after.out).toBe('No more keys.\n')
    expect(await holdfast('ledger', 'keys', 'b', '--after', 'no')).toMatchObject({ code: 2 })
    expect(await holdfast('ledger', 'keys')).toMatchObject({ code: 2 })
  })

  test('add up what was used', async () => {
    const { out } = await holdfast('ledger', 'usage', 'b', '--by', 'key,feature', '--per', 'day')
    expect(out).toMatch(
      /^since\s+key\s+feature\s+used\s+refunded\s+over\s+movements\n.* 00:00:00Z\s+k\s+–\s+3\s+0/,
    )
    const none = await holdfast('ledger', 'usage', 'b', '--to', '2020-01-01')
    expect(none.out).toBe('Nothing was used in this time.\n')
    expect(await holdfast('ledger', 'usage', 'b', '--from', 'never')).toMatchObject({ code: 2 })
    expect(await holdfast('ledger', 'usage', 'b', '--by', 'moon')).toMatchObject({ code: 2 })
  })

  test.each(['keys', 'usage'])('say that nobody knows the book: %s', async (verb) => {
    expect(await holdfast('ledger', verb, 'mistyped')).toMatchObject({
      code: 1,
      out: '',
      err: 'holdfast ledger: There is no book of this name.\nRun `holdfast ledger books`, which shows their names.\n',
    })
  })

  test('show who follows, and forget them if told to', async () => {
    expect((await holdfast('ledger', 'followers')).out).toBe('Nobody follows.\n')
    await withClient(url, (client) => client.query("SELECT books.start_following('me', 'b', true)"))
    expect((await holdfast('ledger', 'followers')).out).toMatch(/\nme\s+b\s+/)
    expect(await holdfast('ledger', 'unfollow', 'me')).toMatchObject({
      code: 3,
      out: expect.stringContaining('say --yes'),
    })
    expect(await holdfast('ledger', 'unfollow', 'me', '--yes')).toMatchObject({ code: 0 })
    expect((await holdfast('ledger', 'followers')).out).toBe('Nobody follows.\n')
    expect(await holdfast('ledger', 'unfollow', 'me', '--yes')).toMatchObject({ code: 1 })
  })
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
      'Months made: 2; ready ahead: 14\nMonths dropped: none\nOperation ids forgotten: 0\nWindows and idle accounts forgotten: 0\nGrants forgotten: 0\n',
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
