/**
 * A refusal is decided by one look and told by another. Whatever comes back in between, what is told must be what
 * refuses: `insufficient` with enough available would send a caller away for nothing.
 */
import { waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const once = (): { readonly operationId: string } => ({ operationId: fresh() })
const between = 4_711

let late: pg.Pool
let hf: Holdfast<pg.PoolClient>

/** Calls of the late ones wait between the two looks, where they ask which ids are known. */
beforeAll(async () => {
  const types = 'integer[], smallint[], smallint[], uuid[], uuid[], timestamptz'
  await fixture.observer.query(`
    ALTER FUNCTION holdfast.known_ids(${types}) RENAME TO known_ids_themselves;
    CREATE FUNCTION holdfast.known_ids(${types}) RETURNS boolean[] LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('application_name') = 'late' THEN
        PERFORM pg_advisory_lock_shared(${between});
        PERFORM pg_advisory_unlock_shared(${between});
      END IF;
      RETURN holdfast.known_ids_themselves($1, $2, $3, $4, $5, $6);
    END $$`)
  late = new pg.Pool({
    connectionString: fixture.database.directUrl,
    application_name: 'late',
    max: 1,
  })
  hf = createHoldfast(fromPg(late))
})
afterAll(() => late.end())

type Call = (hf: Holdfast<pg.PoolClient>, tx?: pg.PoolClient) => Promise<{ readonly ok: boolean }>

/** The verdict of a call whose account changes between its two looks. */
async function meanwhile(call: Call, change: () => Promise<unknown>): Promise<unknown> {
  await fixture.observer.query('SELECT pg_advisory_lock($1)', [between])
  let isOpen = false
  const open = async (): Promise<void> => {
    if (!isOpen) await fixture.observer.query('SELECT pg_advisory_unlock($1)', [between])
    isOpen = true
  }
  try {
    // In a transaction of the caller's, where no call is given up for waiting.
    return await hf.transaction(async (tx) => {
      const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      const told = call(hf, tx)
      await waitUntilBlocked(fixture.pool, rows[0]?.pid as number)
      await change()
      await open()
      return await told
    })
  } finally {
    await open()
  }
}

const windows = {
  lifetime: { per: 'lifetime' },
  day: { per: 'day' },
  rate: { rate: '365 days' },
} as const

test.each(Object.entries(windows))(
  '%s: what is given back meanwhile is given',
  async (_, window) => {
    const options = { name: fresh(), limit: 2, ...window }
    const first = once()
    const quota = fixture.hf.quota(options)
    await quota.consume('k', 2, first)
    const call: Call = (late, tx) =>
      late.quota(options).consume(tx as pg.PoolClient, 'k', 2, once())
    const back = (amount: number) => () =>
      quota.refund('k', amount, { ...once(), of: first.operationId })
    // Not enough: then the refusal is told by what there is now.
    const refused = await meanwhile(call, back(1))
    expect(refused).toMatchObject({ ok: false, reason: 'insufficient', available: 1 })
    expect(await meanwhile(call, back(1))).toMatchObject({ ok: true, available: 0 })
    // Control: nothing came back.
    const none = await meanwhile(call, async () => undefined)
    expect(none).toMatchObject({ ok: false, reason: 'insufficient', available: 0 })
  },
)

test('a hold that is released, a limit that is raised, a window that rolls on', async () => {
  const options = { name: fresh(), limit: 1, per: 'lifetime' } as const
  const quota = fixture.hf.quota(options)
  const held = await quota.hold('k', 1, { ...once(), ttl: '1 h' })
  const call: Call = (late, tx) => late.quota(options).consume(tx as pg.PoolClient, 'k', 1, once())
  const release = (): Promise<unknown> => quota.release(held.ok ? String(held.holdId) : '')
  expect(await meanwhile(call, release)).toMatchObject({ ok: true })
  expect(await meanwhile(call, () => quota.setLimit('k', 2, once()))).toMatchObject({ ok: true })

  const rolling = { name: fresh(), limit: 1, rolling: '1 h' } as const
  const used = await fixture.hf.quota(rolling).consume('k', 1, once())
  const roll: Call = (late, tx) => late.quota(rolling).consume(tx as pg.PoolClient, 'k', 1, once())
  const give = (): Promise<unknown> =>
    fixture.hf.quota(rolling).release(used.ok ? String(used.holdId) : '')
  expect(await meanwhile(roll, give)).toMatchObject({ ok: true })
})

test('operations of several lines: applied as a whole, or refused for what is short now', async () => {
  const [one, other] = [1, 1].map((limit) => ({ name: fresh(), limit, per: 'lifetime' }) as const)
  if (one === undefined || other === undefined) throw new Error('there are two')
  const [first, second] = [fixture.hf.quota(one), fixture.hf.quota(other)]
  const [a, b] = [once(), once()]
  await Promise.all([first.consume('k', 1, a), second.consume('k', 1, b)])
  const call: Call = async (late, tx) => {
    const lines = [await late.quota(one).line('k', 1), await late.quota(other).line('k', 1)]
    return await late.ledger.apply(tx as pg.PoolClient, lines, { ...once(), scope: 'k' })
  }
  const half = await meanwhile(call, () => first.refund('k', 1, { ...once(), of: a.operationId }))
  expect(half).toMatchObject({ ok: false, reason: 'insufficient', book: other.name, available: 0 })
  const whole = await meanwhile(call, () => second.refund('k', 1, { ...once(), of: b.operationId }))
  expect(whole).toMatchObject({ ok: true })
  expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
})
