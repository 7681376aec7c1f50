/** Tables that rows are claimed from, as an observer tells them. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { ClaimsOptions } from '../../../src/entries/claims.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { ObservedClaims } from '../../../src/observe/model.ts'
import { appRole } from '../../support/app-role.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { quoted } from '../../support/schema-fixture.ts'
import { reportsOn } from '../../support/reports.ts'

const table = (name: string): string => `CREATE TABLE ${name} (
  id int PRIMARY KEY, status text NOT NULL DEFAULT 'pending', claim_token uuid, lease_until timestamptz,
  run_at timestamptz NOT NULL DEFAULT now(), tries int NOT NULL DEFAULT 0, filler text);`
const fixture = ledgerFixture(`${table('outbox')}${table('bare')}${table('large')}`)
const role = appRole(fixture)
const columns = { runAt: 'run_at', attempts: 'tries' }

beforeAll(async () => {
  await fixture.observer.query(`
    CREATE INDEX ON outbox (run_at, id) WHERE status = 'pending';
    CREATE INDEX ON outbox (lease_until) WHERE status = 'claimed';
    GRANT SELECT ON outbox, bare, large TO ${quoted(role.name)}`)
})

async function look(options: ClaimsOptions): Promise<ObservedClaims> {
  const [first] = await reportsOn(fromPg(role.pool), [options]).claims()
  return first as ObservedClaims
}

describe('a table of the user', () => {
  test('ready, claimed, dead and stranded, with the age of the oldest', async () => {
    expect(await look({ table: 'outbox', columns })).toEqual({
      table: 'outbox',
      ready: 0,
      claimed: 0,
      dead: 0,
      stranded: 0,
      capped: false,
      advice: [],
    })
    await fixture.observer.query(`
      INSERT INTO outbox (id, status, run_at, lease_until)
      SELECT n, 'pending', now() - n * interval '1 minute', NULL::timestamptz FROM generate_series(1, 5) n
      UNION ALL SELECT 6, 'pending', now() + interval '1 hour', NULL
      UNION ALL SELECT 7, 'claimed', now(), now() + interval '1 minute'
      UNION ALL SELECT 8, 'claimed', now(), now() - interval '10 minutes'
      UNION ALL SELECT 9, 'dead', now(), NULL`)
    const seen = await look({ table: 'outbox', columns })
    expect(seen).toMatchObject({
      ready: 5,
      claimed: 2,
      dead: 1,
      stranded: 1,
      advice: [{ code: 'claim-stranded', what: expect.stringContaining('10 min ago') }],
    })
    expect(seen.oldestReadyMs).toBeGreaterThanOrEqual(300_000)
    expect(seen.oldestReadyMs).toBeLessThan(360_000)
    // Somebody gives it back: the advice is gone.
    await fixture.hf.claims({ table: 'outbox', columns }).recover()
    expect(await look({ table: 'outbox', columns })).toMatchObject({ stranded: 0, advice: [] })
  })

  test('without an index gets the one it needs as advice, and it helps', async () => {
    const missing = await look({ table: 'bare', columns })
    expect(missing.advice.map(({ code }) => code)).toEqual([
      'missing-claim-index',
      'missing-claim-index',
    ])
    for (const { fix } of missing.advice) await fixture.observer.query(fix)
    expect((await look({ table: 'bare', columns })).advice).toEqual([])
  })

  test('that is large is counted up to a bound, and never read as a whole', async () => {
    await fixture.observer.query(`
      INSERT INTO large (id, status, lease_until, filler)
      SELECT n, 'done', NULL, repeat('x', 500) FROM generate_series(1, 400000) n;
      INSERT INTO large (id, status) SELECT n, 'pending' FROM generate_series(400001, 412000) n;
      ANALYZE large`)
    const blind = await look({ table: 'large', columns })
    expect(blind.ready).toBeUndefined()
    expect(blind.dead).toBeUndefined()
    expect(blind.advice).toHaveLength(2)
    for (const { fix } of blind.advice) await fixture.observer.query(fix)
    await fixture.observer.query('ANALYZE large')
    const seen = await look({ table: 'large', columns })
    expect(seen).toMatchObject({ ready: 10_000, claimed: 0, stranded: 0, capped: true, advice: [] })
    // Nothing finds the dead, so nobody counts them.
    expect(seen.dead).toBeUndefined()
  }, 60_000)

  test('that is not there, or lacks a column, is told and hides no other', async () => {
    const [gone, lacking, fine] = await reportsOn(fromPg(role.pool), [
      { table: 'gone' },
      { table: 'outbox', columns: { token: 'nope' } },
      { table: 'outbox', columns },
    ]).claims()
    expect(gone).toMatchObject({ table: 'gone', advice: [{ code: 'claims-broken' }] })
    expect(lacking).toMatchObject({
      advice: [{ code: 'claims-broken', what: expect.stringContaining('outbox.nope') }],
    })
    expect(fine).toMatchObject({ ready: expect.any(Number) })
  })
})

test('the ready-made table, queue by queue, those of which all are dead included', async () => {
  const emails = fixture.hf.work({ queue: 'emails' })
  await emails.enqueue([{ payload: 1 }, { payload: 2 }, { payload: 3 }])
  await emails.claim(1)
  await fixture.hf.work({ queue: 'sms' }).enqueue({ payload: 1 })
  await fixture.observer.query(`UPDATE holdfast.work SET status = 'dead' WHERE queue = 'sms'`)
  expect(await reportsOn(fromPg(role.pool)).claims()).toEqual([
    expect.objectContaining({
      table: 'holdfast.work',
      queue: 'emails',
      ready: 2,
      claimed: 1,
      dead: 0,
      stranded: 0,
      advice: [],
    }),
    expect.objectContaining({ queue: 'sms', ready: 0, claimed: 0, dead: 1 }),
  ])
})
