/**
 * Reads must not grow with the history. Plans of functions are not shown by EXPLAIN, but the pages
 * they touch are, and so are the rows that a scan of a table read.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { accountId } from '../../../src/ledger/account-id.ts'
import {
  peekAt,
  readBalance,
  readHistory,
  readHolds,
} from '../../../src/engines/postgres/ledger/reads.ts'
import { accountLockers, lockedLines } from '../../../src/engines/postgres/ledger/ledger.ts'
import { sweepDue } from '../../../src/engines/postgres/ledger/upkeep.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const movements = 200_000
const names = { ...accountId('hot', 'big', 'hot'), book: 'big', key: 'hot', scope: 'hot' }

beforeAll(async () => {
  // Half of it on one account, over two months; the rest on a thousand others.
  await asSuperuser(
    fixture.observer,
    `SELECT holdfast.make_month(
       (date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date);
     INSERT INTO holdfast.account (bucket, id, book, key, scope)
     SELECT holdfast.bucket_of(k), holdfast.key_account(k, 'big', k), 'big', k, k
     FROM (SELECT 'hot' AS k UNION ALL SELECT 'k' || n FROM generate_series(1, 1000) n) x;
     INSERT INTO holdfast.movement (bucket, kind, account, seq, at, credit, debit, hold, credited,
       debited, held, allowance, operation_id)
     SELECT a.bucket, 2, a.id, n, now() - (x.many - n) * (interval '30 days' / x.many), 0, 1, 0, 0,
       n, 0, 1000000, 'op-' || n
     FROM holdfast.account a,
       LATERAL (SELECT CASE WHEN a.key = 'hot' THEN ${movements / 2} ELSE ${movements / 2_000} END AS many) x,
       generate_series(1, x.many) n;
     INSERT INTO holdfast.balance (bucket, account, debited, allowance, seq, moved_at)
     SELECT a.bucket, a.id, m.seq, 1000000, m.seq, now()
     FROM holdfast.account a,
       LATERAL (SELECT count(*) AS seq FROM holdfast.movement m WHERE m.bucket = a.bucket AND m.account = a.id) m;
     INSERT INTO holdfast.hold (bucket, id, account, amount, state, expires_at, made_seq, ended_at, seq, operation_id)
     SELECT a.bucket, gen_random_uuid(), a.id, 1, 3, now(), n, now(), n, 'x'
     FROM holdfast.account a, generate_series(1, 20) n`,
  )
}, 120_000)

interface Cost {
  readonly pages: number
  readonly scanned: number
}

/** Pages touched by one statement, and rows that were read by scanning whole tables. */
async function costOf(text: string, values: readonly unknown[] = []): Promise<Cost> {
  const client = await callerTransaction(fixture)
  // The first call also plans, which reads the catalogue.
  await client.query(text, [...values])
  const scans = `SELECT coalesce(sum(seq_tup_read), 0)::int AS rows FROM pg_stat_xact_user_tables
                 WHERE schemaname = 'holdfast'`
  const before = (await client.query(scans)).rows[0].rows as number
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [
    ...values,
  ])
  const { Plan: plan } = rows[0]['QUERY PLAN'][0]
  const after = (await client.query(scans)).rows[0].rows as number
  return {
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    scanned: after - before,
  }
}

const line = {
  values: [`{${names.bucket}}`, `{${names.base}}`, '{NULL}', '{NULL}', '{NULL}'],
  isMixed: false,
}

const peek = peekAt('holdfast', {
  ...names,
  amount: '1',
  allowance: '5',
  rolling: false,
  unit: undefined,
  zone: undefined,
  everyUs: undefined,
})

/** With and without statistics: small tables grow, and plans must not be those of small ones. */
describe.each(['never analysed', 'analysed'])('with 200,000 movements, %s', (when) => {
  beforeAll(async () => {
    if (when === 'analysed') await fixture.observer.query('ANALYZE')
  })

  test.each([
    ['peek', peek, 30],
    ['balance', readBalance('holdfast', names, undefined), 30],
    [
      'balance of a fortnight ago',
      readBalance('holdfast', names, new Date(Date.now() - 15 * 86_400_000).toISOString()),
      1_500,
    ],
    ['first page of the history', readHistory('holdfast', names, undefined, 50), 200],
    [
      'a page in the middle',
      readHistory('holdfast', names, { window: '-infinity', sequence: '50000' }, 50),
      200,
    ],
    ['holds', readHolds('holdfast', names, 50), 30],
    ['sweep', sweepDue('holdfast', 100), 30],
    // Asked for again and again while somebody waits: reading every account had cost all others a quarter.
    ['which of its lines are locked', lockedLines('holdfast', line, []), 30],
    ['who has locked them', accountLockers('holdfast', line, []), 30],
  ])('%s touches few pages', async (_, { text, values }, most) => {
    const { pages, scanned } = await costOf(text, values)
    expect(pages).toBeLessThan(most)
    expect(scanned).toBe(0)
  })

  test.each([
    [`SELECT * FROM holdfast.balances WHERE book = 'big' AND key = 'hot'`, 30],
    [
      `SELECT * FROM holdfast.movements WHERE book = 'big' AND key = 'k7' ORDER BY sequence DESC LIMIT 20`,
      400,
    ],
    [
      `SELECT * FROM holdfast.movements WHERE bucket = ${names.bucket} AND account = '${names.base}'
       ORDER BY sequence DESC LIMIT 20`,
      100,
    ],
    ['SELECT * FROM holdfast.open_holds ORDER BY expires_at LIMIT 20', 30],
  ])('the view: %s', async (text, most) => {
    expect((await costOf(text)).pages).toBeLessThan(most)
  })

  test('control: a balance that is added up touches all of them', async () => {
    const { pages } = await costOf(
      `SELECT sum(credit - debit) FROM holdfast.movement
       WHERE bucket = ${names.bucket} AND account = '${names.base}'`,
    )
    expect(pages).toBeGreaterThan(1_500)
  })
})

test('what is read is right, in the middle of it', async () => {
  const { movements: page } = await fixture.hf.ledger.history('big', 'hot', {
    before: '-infinity.50001',
    limit: 3,
  })
  expect(page.map(({ sequence, debited }) => [sequence, debited])).toEqual([
    [50_000, 50_000],
    [49_999, 49_999],
    [49_998, 49_998],
  ])
  const { at, sequence } = page[1] as (typeof page)[number]
  const then = await fixture.hf.ledger.balanceAt('big', 'hot', at)
  expect(then?.at?.getTime()).toBe(at.getTime())
  expect(Math.abs((then?.sequence ?? 0) - sequence)).toBeLessThan(2)
})
