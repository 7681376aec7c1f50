/** Reports must not grow with the history: how many pages they touch, and that no table is read whole. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { Statement } from '../../../src/core/driver.ts'
import {
  readAccount,
  readBooks,
  readOpenHolds,
} from '../../../src/engines/postgres/observe/ledger.ts'
import { lookOnly } from '../../../src/engines/postgres/observe/settings.ts'
import { readSchedules } from '../../../src/engines/postgres/observe/coordination.ts'
import { accountId } from '../../../src/ledger/account-id.ts'
import { isHostile } from '../../support/hostile-database.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const names = { ...accountId('hot', 'big', 'hot'), book: 'big', key: 'hot', scope: 'hot' }

beforeAll(async () => {
  await asSuperuser(
    fixture.observer,
    `SELECT holdfast.make_month((date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date);
     INSERT INTO holdfast.account (bucket, id, book, key, scope)
     SELECT holdfast.bucket_of(k), holdfast.key_account(k, b, k), b, k, k
     FROM (SELECT 'big' AS b, 'hot' AS k UNION ALL SELECT 'big', 'k' || n FROM generate_series(1, 40000) n
       UNION ALL SELECT 'small', 's' || n FROM generate_series(1, 10) n) x;
     INSERT INTO holdfast.balance (bucket, account, debited, allowance, seq, moved_at)
     SELECT a.bucket, a.id, CASE WHEN a.key = 'hot' THEN 100000 ELSE 2 END, 1000000,
       CASE WHEN a.key = 'hot' THEN 100000 ELSE 2 END, now() FROM holdfast.account a;
     INSERT INTO holdfast.movement (bucket, kind, account, seq, at, credit, debit, hold, credited,
       debited, held, allowance, operation_id)
     SELECT a.bucket, 2, a.id, n, now() - (x.many - n) * (interval '30 days' / x.many), 0, 1, 0, 0,
       n, 0, 1000000, 'op-' || n
     FROM holdfast.account a,
       LATERAL (SELECT CASE WHEN a.key = 'hot' THEN 100000 ELSE 2 END AS many) x,
       generate_series(1, x.many) n;
     INSERT INTO holdfast.hold (bucket, id, account, amount, state, expires_at, made_seq, ended_at, seq, operation_id)
     SELECT a.bucket, gen_random_uuid(), a.id, 1, CASE WHEN n = 1 THEN 0 ELSE 3 END,
       now() + n * interval '1 hour', n, now(), n, 'x'
     FROM holdfast.account a, generate_series(1, 4) n;
     INSERT INTO holdfast.schedule (bucket, name, last_tick)
     SELECT holdfast.bucket_of('s' || n), 's' || n, now() FROM generate_series(1, 50) n;
     INSERT INTO holdfast.tick (bucket, schedule, at, manual, state, attempt, token, holder, started_at)
     SELECT s.bucket, s.name, now() - n * interval '1 minute', false, 2, 1, gen_random_uuid(), 'h', now()
     FROM holdfast.schedule s, generate_series(1, 500) n;
     ANALYZE`,
  )
}, 120_000)

interface Cost {
  readonly pages: number
  readonly scanned: string[]
}

async function costOf({ text, values }: Statement, settings?: Statement): Promise<Cost> {
  const client = await callerTransaction(fixture)
  if (settings !== undefined) await client.query(settings.text, [...settings.values])
  await client.query(text, [...values])
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [
    ...values,
  ])
  const { Plan: plan } = rows[0]['QUERY PLAN'][0] as { readonly Plan: Node }
  return {
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    scanned: nodesOf(plan)
      .filter((node) => node['Node Type'] === 'Seq Scan')
      .map((node) => String(node['Relation Name'])),
  }
}

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly Node[]
}

function nodesOf(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}

describe('with 180,000 movements and 160,000 holds', () => {
  test.each([
    ['an account', readAccount('holdfast', names), 100],
    ['open holds', readOpenHolds('holdfast', 100), 700],
    ['books', readBooks('holdfast'), 60_000],
    ['schedules', readSchedules('holdfast', 10), 2_000],
  ])('%s', async (_, statement, mostPages) => {
    const { pages, scanned } = await costOf(statement, lookOnly(10_000, true))
    // All schedules are wanted.
    expect(scanned.filter((table) => table !== 'schedule')).toEqual([])
    expect(pages).toBeLessThan(mostPages)
  })

  // The settings of a hostile database forbid such plans.
  test.skipIf(isHostile)('the control: left alone, the planner reads tables whole', async () => {
    expect((await costOf(readBooks('holdfast'))).scanned).toContain('account')
  })

  test.skipIf(isHostile)('the control: counting by hand reads it all', async () => {
    const { scanned } = await costOf({
      text: 'SELECT book, count(*) FROM holdfast.balances GROUP BY book',
      values: [],
    })
    expect(scanned).toContain('balance')
  })
})
