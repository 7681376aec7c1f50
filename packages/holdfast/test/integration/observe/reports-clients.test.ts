/** Every report through every client. */
import { sample } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { reportsOn } from '../../support/reports.ts'

const fixture = ledgerFixture(`CREATE TABLE outbox (id int PRIMARY KEY, status text NOT NULL,
  claim_token uuid, lease_until timestamptz)`)
const key = fresh()

beforeAll(async () => {
  const { hf } = fixture
  const credits = hf.credits({ name: 'credits' })
  await credits.grant(key, 100, { operationId: fresh() })
  await credits.hold(key, 20, { operationId: fresh(), ttl: '1 h' })
  await hf.leases.acquire('nightly', { renew: false, ttl: '1 h' })
  const schedule = hf.schedule({
    name: 'hourly',
    every: '1 h',
    guarantee: 'at-most-once',
    handler: () => undefined,
  })
  await schedule.fire()
  await schedule.runNow()
  await hf.work({ queue: 'emails' }).enqueue({ payload: 1 })
})

describe.each(sample(Object.entries(everyClient), 3, 2))('%s', (_, open) => {
  let client: OpenClient
  beforeAll(async () => {
    client = await open(fixture.database.url)
  })
  afterAll(async () => client.end())

  test('each report is the same data', async () => {
    const reports = reportsOn(client.driver, [{ table: 'outbox' }])
    expect(await reports.transactions()).toMatchObject({ longest: expect.any(Array) })
    expect(await reports.books()).toEqual([
      { book: 'credits', accounts: 1, capped: false, openHolds: 1, overdueHolds: 0, advice: [] },
    ])
    expect(await reports.account({ book: 'credits', key })).toMatchObject({
      accounts: [{ available: '80', drift: '0' }],
      holds: [{ amount: '20' }],
      grants: [{ remaining: '80' }],
      movements: [{ kind: 'hold' }, { kind: 'grant' }],
    })
    expect(await reports.holds()).toMatchObject([{ key, amount: '20', overdue: false }])
    expect(await reports.leases()).toMatchObject([{ name: 'nightly', held: true }])
    const [hourly, ...others] = await reports.schedules()
    // At a full hour there is one by the clock as well.
    const byHand = hourly?.ticks.filter(({ manual }) => manual)
    expect([hourly, byHand, others]).toMatchObject([
      { name: 'hourly', rule: 'every 1 h' },
      [{ state: 'done' }],
      [],
    ])
    expect(await reports.claims()).toMatchObject([
      { table: 'outbox', ready: 0, advice: [{ code: 'missing-claim-index' }, {}] },
      { table: 'holdfast.work', queue: 'emails', ready: 1 },
    ])
  })
})
