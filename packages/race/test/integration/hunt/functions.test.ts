/** What an SQL function runs inside: it leaves a pair undecided, unless `functions: 'atomic'` takes it for one statement, which is told. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../../holdfast/src/index.ts'
import { migrate } from '../../../../holdfast/src/schema/index.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import {
  formatHunt,
  htmlHunt,
  hunt,
  type HuntedPair,
  type HuntOptions,
  type HuntReport,
  huntTests,
  instrument,
  jsonHunt,
} from '../../../src/hunt.ts'

instrument(pg)

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE rooms (name text PRIMARY KEY, taken int NOT NULL, seats int NOT NULL);
      INSERT INTO rooms VALUES ('A', 0, 3);
      CREATE FUNCTION has_seat(room text) RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE found_taken int; found_seats int;
        BEGIN
          SELECT taken INTO found_taken FROM rooms WHERE name = room;
          SELECT seats INTO found_seats FROM rooms WHERE name = room;
          RETURN found_taken < found_seats;
        END $$;
      CREATE FUNCTION take_seat(room text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM 1 FROM rooms WHERE name = room FOR UPDATE;
          IF NOT has_seat(room) THEN RETURN false; END IF;
          UPDATE rooms SET taken = taken + 1 WHERE name = room;
          RETURN true;
        END $$`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

const isTrue = async (text: string, values: readonly unknown[]): Promise<boolean> => {
  const { rows } = await pool.query<{ is: boolean }>(text, [...values])
  return rows[0]?.is === true
}

const ways: Readonly<Record<string, (room: string) => Promise<boolean>>> = {
  // Check and write are in the function, under a lock of the row.
  '/inside': (room) => isTrue('SELECT take_seat($1) AS is', [room]),
  // The check is in one statement, and the write in another.
  '/outside': async (room) => {
    if (!(await isTrue('SELECT has_seat($1) AS is', [room]))) return false
    await pool.query('UPDATE rooms SET taken = taken + 1 WHERE name = $1', [room])
    return true
  },
  '/plain': (room) =>
    isTrue(
      'UPDATE rooms SET taken = taken + 1 WHERE name = $1 AND taken < seats RETURNING true AS is',
      [room],
    ),
}

async function app({ url: path = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
  response.statusCode = (await ways[path]?.('A')) === true ? 201 : 409
  response.end()
}

const huntIn = (
  path: string,
  functions: Pick<HuntOptions, 'functions'> = {},
): Promise<HuntReport> =>
  hunt({
    url,
    app,
    suite: async ({ fetch }) => {
      expect((await fetch(path, { method: 'POST' })).status).toBe(201)
    },
    ...functions,
  })
const atomic = { functions: 'atomic' } as const
const only = ({ pairs }: HuntReport): HuntedPair | undefined => pairs[0]

describe('check and write in one function', () => {
  test('the pair is undecided, and the reason names the option', async () => {
    const report = await huntIn('/inside')
    expect(only(report)).toMatchObject({
      verdict: 'undecided',
      because: expect.stringMatching(
        /SELECT take_seat.* --functions atomic, or functions: 'atomic'/,
      ),
    })
    expect(report).toMatchObject({ functions: 'open', notes: [] })
  })

  test('with the option it is refuted, and everything that is handed over says what was assumed', async () => {
    const report = await huntIn('/inside', atomic)
    const assumed =
      "Counted as one statement, by functions: 'atomic': take_seat(); orders in which others act inside were not run"
    expect(only(report)).toMatchObject({ verdict: 'refuted', assumed })
    expect(only(report)?.from).toContain('the rows after it ran 2 times')
    const note = expect.stringMatching(/^functions: 'atomic': .* POST \/inside × itself$/)
    expect(report.notes).toEqual([note])
    expect(JSON.parse(jsonHunt(report))).toMatchObject({
      functions: 'atomic',
      notes: [note],
      pairs: [{ verdict: 'refuted', assumed }],
    })
    expect(formatHunt(report, { columns: 1_000, colour: false })).toContain("functions: 'atomic': ")
    expect(htmlHunt(report)).toContain('take_seat(); orders in which others act inside')
  })
})

test('the control: a check in one statement and a write in another race all the same, and the test of it says the option', async () => {
  const report = await huntIn('/outside', atomic)
  expect(only(report)).toMatchObject({
    verdict: 'proven',
    from: ['the rows after it ran 2 times'],
  })
  const texts = (of: HuntReport): string =>
    huntTests(of, { app: 'app.ts' })
      .map(({ text }) => text)
      .join()
  expect(texts(report)).toContain("functions: 'atomic',")
  const open = await huntIn('/outside')
  expect(only(open)).toMatchObject({ verdict: 'proven' })
  expect(texts(open)).not.toContain('functions:')
})

test('where no function is called nothing is assumed', async () => {
  const report = await huntIn('/plain', atomic)
  expect(only(report)).toMatchObject({ verdict: 'refuted' })
  expect(only(report)?.assumed).toBeUndefined()
  expect(report.notes).toEqual([])
})

test('two calls of the ledger near its limit are refuted with the option', {
  timeout: 120_000,
}, async () => {
  await migrate(fromPg(pool))
  // As in two processes: each has its own queue in memory.
  const free = [1, 2].map(() =>
    createHoldfast(fromPg(pool)).quota({ name: 'calls', limit: 3, per: 'lifetime' }),
  )
  for (const quota of free) await quota.consume('warm', 1, { operationId: 'warm' })
  const consume = async (user: string): Promise<boolean> => {
    const own = free.shift() as (typeof free)[0]
    try {
      return (await own.consume(user, 1, { operationId: randomUUID() })).ok
    } finally {
      free.push(own)
    }
  }
  const huntQuota = (functions: Pick<HuntOptions, 'functions'>): Promise<HuntReport> =>
    hunt({
      url,
      outcome: (end) => ('answer' in end && end.answer === false ? 'refused' : undefined),
      suite: async ({ call }) => {
        await call('consume', consume, 'ann')
      },
      budget: { ms: 100_000, pairMs: 40_000 },
      ...functions,
    })
  expect(only(await huntQuota({}))).toMatchObject({
    verdict: 'undecided',
    because: expect.stringContaining('--functions atomic'),
  })
  const report = await huntQuota(atomic)
  expect(only(report)).toMatchObject({
    verdict: 'refuted',
    assumed: expect.stringMatching(
      /^Counted as one statement, by functions: 'atomic': apply_(?:one|debit)\(\)/,
    ),
  })
  expect(only(report)?.from).toContain('the rows after it ran 2 times')
})
