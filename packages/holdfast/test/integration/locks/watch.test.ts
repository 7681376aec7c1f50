import { deferred, waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Executor } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, legacyKey, lockKey } from '../../../src/index.ts'
import type { HeldLongEvent } from '../../../src/entries/locks.ts'
import { callerTransaction, eventsOn, pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()

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

  test('guard in production, without a listener: from the second time on it says where', async () => {
    vi.stubEnv('NODE_ENV', 'production')
    const warned: unknown[] = []
    const emitted = vi.spyOn(process, 'emitWarning').mockImplementation(((...args: unknown[]) => {
      warned.push((args[1] as { readonly detail?: string }).detail)
    }) as never)
    onTestFinished(() => {
      vi.unstubAllEnvs()
      emitted.mockRestore()
    })
    const watched = fixture.create({ locks: { watch } })
    for (const time of [1, 2]) {
      await watched.guard(lockKey('held', 'production'), async () => {
        await waitUntil('the warning', async () => warned.length === time || undefined)
      })
    }
    expect(warned).toEqual(['', expect.stringContaining('watch.test.ts')])
  })

  test("the caller's transaction: reported while open, silent once it ended unseen", async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    // Between the two there is time to commit, also where everything is slow.
    const watched = fixture.create({ locks: { watch: { heldLongMs: 60, heldTooLongMs: 1_000 } } })
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

  test('of what was tried, only that which was granted', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const [holder, client] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    const keys = ['a', 'b', 'c', 'd'].map((part) => lockKey('tried', part))
    await fixture.create({ locks: { watch: false } }).locks.acquire(holder, keys.slice(1, 3))
    const watched = fixture.create({ locks: { watch } })
    const tried = [...keys, legacyKey.hashtext('only the server knows its number')]
    expect(await watched.locks.tryAcquire(client, tried)).toBe(false)
    await waitUntil('the warning', () => events.length >= 1 || undefined)
    expect(events[0]?.names).toEqual(['tried:a', 'tried:d'])
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

describe('T8: the watch on a server that is slow or away', () => {
  const watch = { heldLongMs: 60, heldTooLongMs: 400 }
  type Look = Parameters<Executor['query']>[0]

  /** Everything over the fixture's pool, with what is asked beside transactions in the test's hands. */
  function watchedBy(
    look: (
      statement: Look,
      ask: () => ReturnType<Executor['query']>,
    ) => ReturnType<Executor['query']>,
    times: Partial<typeof watch> = watch,
  ): Holdfast<pg.PoolClient> {
    const driver = fromPg(fixture.pool)
    const alone: Executor = {
      query: (statement) =>
        statement.text.includes('pg_locks')
          ? look(statement, () => driver.alone.query(statement))
          : driver.alone.query(statement),
    }
    return createHoldfast({ ...driver, alone }, { locks: { watch: times } })
  }

  test('a look that failed is made again', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    let looks = 0
    const hf = watchedBy((_, ask) => {
      looks += 1
      return looks === 1 ? Promise.reject(new Error('no connection')) : ask()
    })
    await hf.locks.acquire(await callerTransaction(fixture), lockKey('held', 'failed-look'))
    await waitUntil('both events', () => events.length >= 2 || undefined)
    expect(events.map(({ level }) => level)).toEqual(['warning', 'error'])
  })

  test('one look at a time, and no event before its time', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const now = { looks: 0, most: 0 }
    const hf = watchedBy(async (_, ask) => {
      now.looks += 1
      now.most = Math.max(now.most, now.looks)
      // Longer than the pause between two looks.
      await fixture.observer.query('SELECT pg_sleep(0.15)')
      now.looks -= 1
      return ask()
    })
    const keys = ['a', 'b', 'c'].map((part) => lockKey('slow-look', part))
    for (const key of keys) {
      await hf.locks.acquire(await callerTransaction(fixture), key)
      await fixture.observer.query('SELECT pg_sleep(0.07)')
    }
    await waitUntil('all events', () => events.length >= 2 * keys.length || undefined)
    expect(now.most).toBe(1)
    for (const { level, heldMs } of events) {
      const { heldLongMs, heldTooLongMs } = watch
      expect(heldMs).toBeGreaterThanOrEqual(level === 'error' ? heldTooLongMs : heldLongMs)
    }
  })

  test('a look that is not answered keeps nobody from hearing of our own transactions', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const asked = deferred()
    const answer = deferred()
    const hf = watchedBy(async (_, ask) => {
      asked.resolve()
      await answer.promise
      return ask()
    })
    await hf.locks.acquire(await callerTransaction(fixture), lockKey('held', 'asked-for'))
    await asked.promise
    await hf.guard(lockKey('held', 'ours'), async () => {
      await waitUntil('both events', () => events.length >= 2 || undefined)
    })
    expect(events.map(({ names }) => names)).toEqual([['held:ours'], ['held:ours']])
    answer.resolve()
  })

  test('an event does not wait for that of an older hold', async () => {
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    const hf = watchedBy((_, ask) => ask(), { heldLongMs: 60, heldTooLongMs: 5_000 })
    const leave = deferred()
    const old = hf.guard(lockKey('held', 'old'), () => leave.promise)
    await waitUntil('the first', () => events.length >= 1 || undefined)
    const young = hf.guard(lockKey('held', 'young'), () => leave.promise)
    await waitUntil('the second', () => events.length >= 2 || undefined)
    leave.resolve()
    await Promise.all([old, young])
    expect(events[1]?.heldMs).toBeLessThan(2_500)
  })

  test('where nobody listens nothing is asked, and our own are warned of all the same', async () => {
    vi.stubEnv('NODE_ENV', 'production')
    onTestFinished(() => {
      vi.unstubAllEnvs()
    })
    let looks = 0
    const hf = watchedBy((_, ask) => {
      looks += 1
      return ask()
    })
    const client = await callerTransaction(fixture)
    await hf.locks.acquire(client, lockKey('held', 'unheard'))
    await client.query('COMMIT')
    await client.query('BEGIN')
    looks = 0
    const warned = deferred<Error>()
    const hear = (warning: Error): void => {
      if (warning.message.includes('unheard-guard')) warned.resolve(warning)
    }
    process.on('warning', hear)
    onTestFinished(() => {
      process.off('warning', hear)
    })
    // Its loud event comes after everything that the other one could have had.
    const warning = await hf.guard(lockKey('unheard-guard', 'alice'), () => warned.promise)
    expect(warning.message).not.toContain('alice')
    expect(looks).toBe(0)

    // Control: with somebody who listens it is asked for.
    const events = eventsOn<HeldLongEvent>('holdfast:lock.held-long')
    await hf.locks.acquire(client, lockKey('held', 'heard'))
    await waitUntil('the event', () => events.length >= 1 || undefined)
    expect(looks).toBeGreaterThan(0)
  })
})

test.each([-1, Number.NaN])('limits that are none are refused: %d', (heldLongMs) => {
  expect(() => fixture.create({ locks: { watch: { heldLongMs } } })).toThrow(/watch\.heldLongMs/)
})
