/**
 * What one operation reads must not grow with what its account has: thousands of grants that nobody has spent, or
 * thousands of takings of a rolling window. PostgreSQL counts the rows that a transaction has read.
 */
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { accountId } from '../../../src/ledger/account-id.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const many = 5_000
const most = 60
const wallet = () => fixture.hf.credits({ name: 'wallet' })
const calls = () => fixture.hf.quota({ name: 'calls', limit: many, rolling: '1 h' })

beforeAll(async () => {
  // One real operation each, and what follows from many like it.
  await wallet().grant('crowd', 1, { operationId: 'first' })
  await calls().consume('crowd', 1, { operationId: 'first' })
  const own = accountId('crowd', 'wallet', 'crowd')
  const rolling = accountId('crowd', 'calls', 'crowd')
  await asSuperuser(
    fixture.observer,
    `INSERT INTO holdfast.credit_grant (bucket, account, id, priority, ordinal, amount, remaining, effective_at,
       expires_at, state, operation_id)
     SELECT c.bucket, c.account, gen_random_uuid(), c.priority, n, 1, 1, now(), 'infinity', 1, 'op-' || n
     FROM holdfast.credit_grant c, generate_series(2, ${many}) n WHERE c.account = '${own.base}';
     UPDATE holdfast.balance SET credited = ${many}, seq = ${many} WHERE account = '${own.base}';
     INSERT INTO holdfast.hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
     SELECT h.bucket, gen_random_uuid(), h.account, 1, h.expires_at + n * interval '1 second', n, 'op-' || n
     FROM holdfast.hold h, generate_series(2, ${many}) n WHERE h.account = '${rolling.base}';
     UPDATE holdfast.balance SET held = ${many}, seq = ${many} WHERE account = '${rolling.base}'`,
  )
})

/** Rows of grants, holds and allocations that were read while it ran. */
async function readBy(work: (tx: pg.PoolClient) => Promise<unknown>): Promise<number> {
  const client = await callerTransaction(fixture)
  const count = async (): Promise<number> => {
    const { rows } = await client.query(
      `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows FROM pg_stat_xact_user_tables
       WHERE schemaname = 'holdfast' AND relname IN ('credit_grant', 'hold', 'allocation')`,
    )
    return rows[0].rows
  }
  const before = await count()
  await work(client)
  return (await count()) - before
}

const id = (): { operationId: string } => ({ operationId: fresh() })
const deeds: Readonly<Record<string, (tx: pg.PoolClient) => Promise<unknown>>> = {
  grant: (tx) => wallet().grant(tx, 'crowd', 1, id()),
  'grant with a feature': (tx) => wallet().grant(tx, 'crowd', 1, { ...id(), onlyFor: ['chat'] }),
  spend: (tx) => wallet().spend(tx, 'crowd', 1, id()),
  'spend on a feature': (tx) => wallet().spend(tx, 'crowd', 1, { ...id(), feature: 'chat' }),
  'spend that is refused': (tx) => wallet().spend(tx, 'crowd', many * 2, id()),
  balance: (tx) => wallet().balance(tx, 'crowd'),
  async refund(tx) {
    const spent = id()
    await wallet().spend(tx, 'crowd', 2, spent)
    await wallet().refund(tx, 'crowd', 1, { ...id(), of: spent.operationId })
  },
  async 'hold and settle'(tx) {
    const held = await wallet().hold(tx, 'crowd', 3, { ...id(), ttl: '1 min' })
    if (held.ok) await wallet().settle(tx, held.holdId as string, 2)
  },
  async transfer(tx) {
    const transfer = {
      from: [await wallet().line('crowd', 1)],
      to: [wallet().grantLine('other', 1)],
    }
    await fixture.hf.ledger.transfer(tx, transfer, { ...id(), acrossScopes: true })
  },
  'rolling consume': (tx) => calls().consume(tx, 'crowd', 1, id()),
}

describe.each(['never analysed', 'analysed'])('an account with 5,000 grants, %s', (when) => {
  beforeAll(async () => {
    if (when === 'analysed') await fixture.observer.query('ANALYZE')
  })

  test.each(Object.keys(deeds))('%s reads few of them', async (name) => {
    expect(await readBy(deeds[name] as (typeof deeds)[string])).toBeLessThan(most)
  })
})

test('control: without its index, what is restricted is looked for among all', async () => {
  await asSuperuser(fixture.observer, 'DROP INDEX holdfast.credit_grant_restricted')
  expect(await readBy(deeds['spend'] as (typeof deeds)[string])).toBeGreaterThan(many / 2)
})
