/** Booking what fell due on accounts that nobody touches, by any number of processes at once. */
import { barrier, deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { SweepEvent } from '../../../src/core/events/event-map.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction, eventsOn } from '../../support/pg-fixture.ts'
import { creditsRoom } from './credits-room.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })

/** Holds of one each on keys of their own, all of them past their time. */
async function strand(name: string, keys: number, holdsPerKey = 1): Promise<string[]> {
  const quota = fixture.hf.quota({ name, limit: 1_000_000, per: 'lifetime' })
  const scope = `scope-${name}`
  const verdicts = await Promise.all(
    Array.from({ length: keys * holdsPerKey }, (_, at) =>
      quota.hold(`${name}-${at % keys}`, 1, { ...operation(), ttl: '1 h', scope }),
    ),
  )
  await asSuperuser(
    fixture.observer,
    `UPDATE holdfast.hold h SET expires_at = now() - interval '1 s'
     FROM holdfast.account a WHERE a.id = h.account AND a.book = '${name}' AND h.state = 0;
     UPDATE holdfast.balance b SET due_at = now() - interval '1 s'
     FROM holdfast.account a WHERE a.id = b.account AND a.book = '${name}'`,
  )
  return verdicts.map((verdict) => (verdict.ok ? (verdict.holdId as string) : ''))
}

async function heldIn(name: string): Promise<{ held: number; open: number; expired: number }> {
  const { rows } = await fixture.observer.query(
    `SELECT sum(b.held)::int AS held,
       (SELECT count(*)::int FROM holdfast.open_holds WHERE book = $1) AS open,
       (SELECT count(*)::int FROM holdfast.movements WHERE book = $1 AND kind = 'expire') AS expired
     FROM holdfast.balances b WHERE b.book = $1`,
    [name],
  )
  return rows[0]
}

async function sweepAll(): Promise<number> {
  let sum = 0
  for (;;) {
    const { fallen, more } = await fixture.hf.ledger.sweep({ limit: 50 })
    sum += fallen
    if (!more) return sum
  }
}

describe('sweep', () => {
  test('expires what is due in batches, and leaves what is not', async () => {
    const name = fresh()
    await strand(name, 120)
    const quota = fixture.hf.quota({ name, limit: 10, per: 'lifetime' })
    const kept = await quota.hold('kept', 7, { ...operation(), ttl: '1 h' })
    const first = await fixture.hf.ledger.sweep({ limit: 50 })
    expect(first).toEqual({ fallen: 50, more: true })
    expect(await sweepAll()).toBe(70)
    expect(await heldIn(name)).toEqual({ held: 7, open: 1, expired: 120 })
    expect(await quota.settle(kept.ok ? (kept.holdId as string) : '', 7)).toMatchObject({
      ok: true,
    })
    expect(await fixture.hf.ledger.sweep()).toEqual({ fallen: 0, more: false })
    await expect(fixture.hf.ledger.sweep({ limit: 0 })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test('without it, a cold account keeps its hold: control', async () => {
    const name = fresh()
    await strand(name, 3)
    expect(await heldIn(name)).toEqual({ held: 3, open: 3, expired: 0 })
    await sweepAll()
    expect(await heldIn(name)).toEqual({ held: 0, open: 0, expired: 3 })
  })

  test('lets grants begin and lapse on accounts that nobody touches', async () => {
    const name = fresh()
    const credits = fixture.hf.credits({ name })
    const room = creditsRoom(fixture, name)
    const key = fresh()
    const soon = new Date(Date.now() + 3_600_000)
    await credits.grant(key, 30, { operationId: 'ends', expiresAt: soon })
    await credits.grant(key, 50, { operationId: 'begins', effectiveAt: soon })
    await room.makeDue(key, 'ends', 'expires_at')
    await room.makeDue(key, 'begins', 'effective_at')
    expect(await fixture.hf.ledger.balance(name, key)).toMatchObject({ available: 30, due: true })
    expect(await fixture.hf.ledger.sweep()).toEqual({ fallen: 2, more: false })
    expect(await fixture.hf.ledger.balance(name, key)).toMatchObject({ available: 50, due: false })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('passes over an account that somebody works on, without waiting', async () => {
    const name = fresh()
    await strand(name, 2)
    const busy = await callerTransaction(fixture)
    await busy.query(
      `SELECT FROM holdfast.balance b JOIN holdfast.account a ON a.id = b.account
       WHERE a.key = $1 FOR UPDATE OF b`,
      [`${name}-0`],
    )
    expect(await fixture.hf.ledger.sweep()).toEqual({ fallen: 1, more: true })
    await busy.query('COMMIT')
    expect(await fixture.hf.ledger.sweep()).toEqual({ fallen: 1, more: false })
  })

  test('and settlements and releases at once end every hold once', async () => {
    const name = fresh()
    const holds = await strand(name, 20, 5)
    const quota = fixture.hf.quota({ name, limit: 1_000_000, per: 'lifetime', late: 'refuse' })
    const start = barrier(6)
    const sweepers = Array.from({ length: 4 }, async () => {
      await start()
      return sweepAll()
    })
    const settler = (async () => {
      await start()
      return Promise.all(holds.map((holdId) => quota.settle(holdId, 1)))
    })()
    const releaser = (async () => {
      await start()
      return Promise.all(holds.map((holdId) => quota.release(holdId)))
    })()
    await Promise.all([...sweepers, settler, releaser])
    // Every hold was past its time, so every one of them expired: nobody came too early.
    expect((await settler).filter(({ ok }) => ok)).toEqual([])
    expect((await releaser).filter(({ ok }) => ok)).toEqual([])
    expect(await heldIn(name)).toEqual({ held: 0, open: 0, expired: 100 })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })
})

describe('a sweeper', () => {
  test('sweeps until it is stopped, and tells how it goes', async () => {
    const events = eventsOn<SweepEvent>('holdfast:ledger.sweep')
    const name = fresh()
    await strand(name, 130)
    const sweepers = [1, 2].map(() => fixture.hf.ledger.startSweeper({ every: '5 ms', limit: 50 }))
    onTestFinished(async () => {
      await Promise.all(sweepers.map((sweeper) => sweeper.stop()))
    })
    await waitUntil('all has fallen', async () =>
      (await heldIn(name)).open === 0 ? true : undefined,
    )
    await Promise.all(sweepers.map((sweeper) => sweeper.stop()))
    const rounds = events.length
    expect(events.reduce((sum, { fallen }) => sum + fallen, 0)).toBe(130)
    expect(events.every(({ error }) => error === undefined)).toBe(true)
    await strand(name, 1)
    expect(events).toHaveLength(rounds)
    expect((await heldIn(name)).open).toBe(1)
    await sweepAll()
  })

  test('publishes what goes wrong, and goes on', async () => {
    const events = eventsOn<SweepEvent>('holdfast:ledger.sweep')
    const sweeper = fixture
      .create({ ledger: { schema: 'nowhere' } })
      .ledger.startSweeper({ every: '2 ms' })
    onTestFinished(() => sweeper.stop())
    await waitUntil('two rounds failed', () => (events.length >= 2 ? true : undefined))
    expect(events[0]).toMatchObject({ fallen: 0, error: { code: 'SCHEMA_MISSING' } })
  })

  test('stop waits for the round that is under way', async () => {
    const events = eventsOn<SweepEvent>('holdfast:ledger.sweep')
    const blocker = await callerTransaction(fixture)
    await blocker.query('LOCK TABLE holdfast.hold IN ACCESS EXCLUSIVE MODE')
    const sweeper = fixture.hf.ledger.startSweeper({ every: '1 ms' })
    await waitUntil('the sweep waits', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_locks WHERE relation = 'holdfast.hold'::regclass AND NOT granted`,
      )
      return rows.length > 0 || undefined
    })
    const stopped = deferred()
    const stopping = sweeper.stop().then(() => stopped.resolve())
    expect(events).toHaveLength(0)
    await blocker.query('COMMIT')
    await stopping
    expect(events).toHaveLength(1)
  })

  test('needs a pause that is one', () => {
    expect(() => fixture.hf.ledger.startSweeper({ every: 0 })).toThrow(/every/)
  })
})
