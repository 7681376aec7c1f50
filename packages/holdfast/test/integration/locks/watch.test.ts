import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { lockKey, shared } from '../../../src/index.ts'
import type { HeldLongEvent } from '../../../src/locks/index.ts'
import { callerTransaction, eventsOn, pgFixture, pidOf } from '../../support/pg-fixture.ts'

const fixture = pgFixture()

/** Two keys in the order PostgreSQL locks them. */
function ordered(name: string): [ReturnType<typeof lockKey>, ReturnType<typeof lockKey>] {
  const [a, b] = [lockKey(name, 'a'), lockKey(name, 'b')]
  if (!('id' in a.lock && 'id' in b.lock)) throw new Error('bigint keys expected')
  return a.lock.id < b.lock.id ? [a, b] : [b, a]
}

describe('lock order', () => {
  test('a later key that belongs before an earlier one is refused in strict mode', async () => {
    const strict = fixture.create({ locks: { strict: true } })
    const [low, high] = ordered('order')
    const client = await callerTransaction(fixture)
    await strict.locks.acquire(client, high)
    await expect(strict.locks.acquire(client, low)).rejects.toMatchObject({
      code: 'LOCK_ORDER',
      details: { fault: 'out-of-order' },
    })
  })

  test('the right order, a key again, and trying are no fault', async () => {
    const strict = fixture.create({ locks: { strict: true } })
    const [low, high] = ordered('order-fine')
    const client = await callerTransaction(fixture)
    await strict.locks.acquire(client, low)
    await strict.locks.acquire(client, high)
    await strict.locks.acquire(client, low)
    await strict.locks.acquire(client, shared(high))
    expect(await strict.locks.tryAcquire(client, lockKey('order-fine', 'c'))).toBe(true)
  })

  test('an upgrade from shared to exclusive is a fault', async () => {
    const strict = fixture.create({ locks: { strict: true } })
    const client = await callerTransaction(fixture)
    const key = lockKey('upgrade', 1)
    await strict.locks.acquire(client, shared(key))
    await expect(strict.locks.acquire(client, key)).rejects.toMatchObject({
      details: { fault: 'upgrade' },
    })
  })

  test('outside strict mode it is an event', async () => {
    const events = eventsOn<{ fault: string; names: string[] }>('holdfast:lock.order')
    const relaxed = fixture.create({ locks: { strict: false } })
    const [low, high] = ordered('order-event')
    const client = await callerTransaction(fixture)
    await relaxed.locks.acquire(client, high)
    await relaxed.locks.acquire(client, low)
    expect(events).toMatchObject([{ fault: 'out-of-order', names: [low.name] }])
  })

  test('the previous transaction of the same connection does not count', async () => {
    const strict = fixture.create({ locks: { strict: true } })
    const [low, high] = ordered('order-reset')
    const client = await callerTransaction(fixture)
    await strict.locks.acquire(client, high)
    await client.query('COMMIT')
    await client.query('BEGIN')
    await expect(strict.locks.acquire(client, low)).resolves.toBeUndefined()
  })

  test('control: that order really deadlocks', async () => {
    const relaxed = fixture.create({ locks: { strict: false } })
    const [low, high] = ordered('order-deadlock')
    const [one, two] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    await relaxed.locks.acquire(one, low)
    await relaxed.locks.acquire(two, high)
    const [pidOne] = [await pidOf(one)]
    const first = relaxed.locks.acquire(one, high, { waitMs: 20_000 }).then(() => 'granted', String)
    await waitUntilBlocked(fixture.observer, pidOne)
    const second = relaxed.locks.acquire(two, low, { waitMs: 20_000 }).then(() => 'granted', String)
    const outcomes = await Promise.race([
      Promise.all([first, second]),
      first.then(async (outcome) => [outcome, await two.query('ROLLBACK').then(() => second)]),
    ])
    expect(outcomes.filter((outcome) => outcome.includes('deadlock detected'))).toHaveLength(1)
  })
})

describe('held too long', () => {
  const watch = { heldLongMs: 60, heldTooLongMs: 180 }

  test('guard: a warning, then an error, naming the key and where it was taken', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const leave = deferred()
    const watched = fixture.create({ locks: { watch } })
    const holding = watched.guard(lockKey('held', 'guard'), () => leave.promise)
    await waitUntil('both events', () => Promise.resolve(events.length >= 2 || undefined))
    leave.resolve()
    await holding
    expect(events.map(({ level, names }) => [level, names])).toEqual([
      ['warning', ['held:guard']],
      ['error', ['held:guard']],
    ])
    expect(events[0]?.heldMs).toBeGreaterThanOrEqual(watch.heldLongMs)
    expect(events[0]?.takenAt).toContain('watch.test.ts')
  })

  test("the caller's transaction: reported while open, silent once it ended unseen", async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const watched = fixture.create({ locks: { watch } })
    const client = await callerTransaction(fixture)
    await watched.locks.acquire(client, lockKey('held', 'caller'))
    await waitUntil('the warning', () => Promise.resolve(events.length >= 1 || undefined))
    expect(events[0]).toMatchObject({ level: 'warning', names: ['held:caller'] })
    await client.query('COMMIT')
    const probe = await callerTransaction(fixture)
    await watched.locks.acquire(probe, lockKey('held', 'probe'))
    // The probe's own louder event comes later than the ended one's would have.
    await waitUntil('the probe', () =>
      Promise.resolve(
        events.some((e) => e.level === 'error' && e.names[0] === 'held:probe') || undefined,
      ),
    )
    expect(events.filter((e) => e.names[0] === 'held:caller' && e.level === 'error')).toEqual([])
  })

  test('what a failed attempt held is not counted while the next one is waited for', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const watched = fixture.create({ locks: { watch } })
    // Both events would be due in a pause this long, if the failed attempt were believed to hold.
    let paused = false
    await watched.guard(
      lockKey('held', 'retried'),
      async (tx) => {
        if (!paused) await tx.query("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
      },
      {
        retry: { attempts: 1_000, budgetMs: 25_000, baseMs: 1_000, capMs: 1_000 },
        onRetry: ({ pauseMs }) => {
          paused = pauseMs > 2 * watch.heldTooLongMs
        },
      },
    )
    expect(paused).toBe(true)
    expect(events).toEqual([])
  })

  test('can be switched off', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const off = fixture.create({ locks: { watch: false } })
    const on = fixture.create({ locks: { watch } })
    const [one, two] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    await off.locks.acquire(one, lockKey('held', 'off'))
    await on.locks.acquire(two, lockKey('held', 'on'))
    await waitUntil('the watched one', () => Promise.resolve(events.length >= 2 || undefined))
    expect(events.every(({ names }) => names[0] === 'held:on')).toBe(true)
  })
})
