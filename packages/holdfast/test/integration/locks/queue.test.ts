import { barrier, deferred, sample, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { keyQueuesOf } from '../../../src/core/locks/key-queues.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import {
  createHoldfast,
  type Holdfast,
  type HoldfastOptions,
  type LockKey,
  lockKey,
} from '../../../src/index.ts'
import { everyClient } from '../../support/every-client.ts'
import { inTime, named } from '../../support/in-time.ts'
import { eventsOn, pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()
const graceMs = 150

interface Service {
  readonly pool: pg.Pool
  readonly driver: Driver<pg.PoolClient>
  readonly hf: Holdfast<pg.PoolClient>
}

/** A process of an application: a pool of its own, and so queues of its own. */
function service(max = 8, options?: HoldfastOptions): Service {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max })
  onTestFinished(async () => await pool.end())
  const driver = fromPg(pool)
  return { pool, driver, hf: createHoldfast(driver, options) }
}

/** Somebody else holds the key; gives their backend, and what lets go of it. */
async function heldElsewhere(key: LockKey): Promise<{ pid: number; letGo: () => Promise<void> }> {
  const client = await fixture.observer.connect()
  let isOpen = true
  const letGo = async (): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    await client.query('ROLLBACK')
    client.release()
  }
  onTestFinished(letGo)
  await client.query('BEGIN')
  const id = key.lock.kind === 'bigint' ? key.lock.id : 0n
  const { rows } = await client.query<{ pid: number }>(
    'SELECT pg_advisory_xact_lock($1), pg_backend_pid() AS pid',
    [id],
  )
  return { pid: rows[0]?.pid as number, letGo }
}

async function failing(call: Promise<unknown>): Promise<{ error: HoldfastError; tookMs: number }> {
  const began = performance.now()
  const error = await call.then(
    () => expect.unreachable('it was let in'),
    (reason: unknown) => reason as HoldfastError,
  )
  return { error, tookMs: performance.now() - began }
}

/** So many guards of this key wait in memory. */
const waiting = (hf: Pick<Service['hf'], 'observe'>, key: LockKey, count: number): Promise<true> =>
  waitUntil(`${count} wait for ${key.name}`, () => {
    const queue = hf.observe.queues().find(({ name }) => name === key.name)
    return (queue?.waiting.length ?? 0) === count ? true : undefined
  })

/** A guard that is in its body until it is told to leave. */
async function inside(
  hf: Holdfast<pg.PoolClient>,
  key: LockKey,
): Promise<{ pid: number; leave: (error?: Error) => void; ended: Promise<unknown> }> {
  const entered = deferred<number>()
  const leaving = deferred()
  const ended = hf.guard(key, async (tx) => {
    const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    entered.resolve(rows[0]?.pid as number)
    await leaving.promise
  })
  ended.catch(() => undefined)
  const leave = (error?: Error): void =>
    error === undefined ? leaving.resolve() : leaving.reject(error)
  onTestFinished(() => leave())
  return { pid: await entered.promise, leave, ended }
}

describe('T11: one hot key stops nobody else', () => {
  test('64 callers of one key leave a pool of 8 to everybody else', async () => {
    const { hf, pool } = service(8)
    const key = lockKey('hot', 'pool')
    const { letGo } = await heldElsewhere(key)
    let settled = 0
    const callers = Array.from({ length: 64 }, () =>
      hf.guard(key, async () => undefined, { waitMs: 4_000 }).finally(() => (settled += 1)),
    )
    await pool.query('SELECT 1')
    expect(settled).toBe(0)
    // One asks for the lock, nobody else has a connection.
    expect(pool.totalCount - pool.idleCount).toBe(1)
    await letGo()
    await Promise.all(callers)
  })

  test('control: without the queue the pool is taken until they give up', async () => {
    const { hf, pool } = service(8, { locks: { queue: false } })
    const key = lockKey('hot', 'taken')
    const { letGo } = await heldElsewhere(key)
    let settled = 0
    const callers = Array.from({ length: 8 }, () =>
      hf.guard(key, async () => undefined, { waitMs: 300 }).finally(() => (settled += 1)),
    )
    const ended = Promise.allSettled(callers)
    await pool.query('SELECT 1')
    expect(settled).toBeGreaterThan(0)
    await ended
    await letGo()
  })

  test.each(sample(Object.keys(everyClient), 3, 1))('%s: other work passes', async (name) => {
    const key = lockKey('hot', name)
    const { driver, end } = await (everyClient[name] as (typeof everyClient)['pg'])(
      fixture.database.url,
    )
    onTestFinished(async () => void (await end()))
    const hf = createHoldfast(driver)
    const { letGo } = await heldElsewhere(key)
    let settled = 0
    const callers = Array.from({ length: 12 }, () =>
      hf.guard(key, async () => undefined, { waitMs: 4_000 }).finally(() => (settled += 1)),
    )
    await driver.alone.query({ text: 'SELECT 1 AS one', values: [] })
    await hf.guard(lockKey('cold', name), async () => undefined)
    expect(settled).toBe(0)
    await letGo()
    await Promise.all(callers)
    expect(keyQueuesOf(driver).size).toBe(0)
  })
})

describe('the queue of a key', () => {
  test('is first come, first served', async () => {
    const { hf } = service()
    const key = lockKey('order', 1)
    const first = await inside(hf, key)
    const order: number[] = []
    const callers: Promise<unknown>[] = []
    for (let number = 0; number < 20; number += 1) {
      callers.push(hf.guard(key, async () => void order.push(number)))
    }
    await waiting(hf, key, 20)
    first.leave()
    await Promise.all([first.ended, ...callers])
    expect(order).toEqual(Array.from({ length: 20 }, (_, number) => number))
  })

  test('goes on after an error of the first, and of its transaction', async () => {
    const { hf } = service()
    const key = lockKey('error', 1)
    const first = await inside(hf, key)
    const next = hf.guard(key, async (tx) => await tx.query('SELECT 1 / 0'))
    const last = hf.guard(key, async () => 'in')
    await waiting(hf, key, 2)
    first.leave(new Error('no'))
    await expect(first.ended).rejects.toThrow('no')
    await expect(next).rejects.toMatchObject({ code: '22012' })
    await expect(last).resolves.toBe('in')
  })

  test('lets the next one go while the first pauses before it tries again', async () => {
    const { hf } = service()
    const key = lockKey('retry', 1)
    const order: string[] = []
    const conflict = Object.assign(new Error('conflict'), { code: '40001' })
    const entered = deferred()
    const failed = deferred()
    const first = hf.guard(
      key,
      async (_, { attempt }) => {
        order.push(`first ${attempt}`)
        if (attempt > 1) return
        entered.resolve()
        await failed.promise
        throw conflict
      },
      { retry: { baseMs: 50, capMs: 50 } },
    )
    await entered.promise
    const next = hf.guard(key, async () => void order.push('next'))
    await waiting(hf, key, 1)
    failed.resolve()
    await Promise.all([first, next])
    expect(order).toEqual(['first 1', 'next', 'first 2'])
  })

  test('is gone when nobody waits, however the waits ended', async () => {
    const { hf, driver } = service()
    const calls = Array.from({ length: 200 }, (_, number) =>
      hf.guard(
        lockKey('many', number % 40),
        async () => {
          if (number % 3 === 0) throw new Error('no')
        },
        number % 5 === 0 ? { waitMs: 1 } : number % 7 === 0 ? { deadlineMs: 5 } : {},
      ),
    )
    await Promise.allSettled(calls)
    expect(keyQueuesOf(driver).size).toBe(0)
    expect(hf.observe.queues()).toEqual([])
  })

  test('is shown with the place and the rest of the wait of each', async () => {
    const { hf } = service()
    const key = lockKey('seen', 1)
    const first = await inside(hf, key)
    const callers = [1, 2].map(() => hf.guard(key, async () => undefined, { waitMs: 20_000 }))
    await waiting(hf, key, 2)
    const [queue, ...others] = hf.observe.queues()
    expect(others).toEqual([])
    expect(queue).toMatchObject({
      name: 'seen:1',
      namespace: 'seen',
      first: { state: 'holding', pid: first.pid },
      waiting: [{ place: 1 }, { place: 2 }],
    })
    expect(queue?.waiting[0]?.leftMs).toBeGreaterThan(10_000)
    first.leave()
    await Promise.all(callers)
  })

  test('is of one driver: all that use it share it', async () => {
    const { hf, driver } = service()
    const other = createHoldfast(driver)
    const key = lockKey('shared', 1)
    const first = await inside(hf, key)
    const next = other.guard(key, async () => 'in')
    await waiting(hf, key, 1)
    first.leave()
    await expect(next).resolves.toBe('in')
  })

  test('can be passed by, for a call or for all', async () => {
    const key = lockKey('off', 1)
    for (const { locks, queue } of [{ locks: {}, queue: false }, { locks: { queue: false } }]) {
      const { hf } = service(8, { locks })
      const first = await inside(hf, key)
      const options = { waitMs: 20_000, ...(queue === undefined ? {} : { queue }) }
      const entered = deferred<number>()
      const next = hf.transaction(async (tx) => {
        const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
        entered.resolve(rows[0].pid)
      })
      await entered.promise
      await next
      const straight = hf.guard(key, async () => 'in', options)
      await waitUntil('it waits in PostgreSQL', async () => {
        const { rows } = await fixture.observer.query(
          `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        )
        return rows.length === 1 ? true : undefined
      })
      expect(hf.observe.queues()).toEqual([])
      first.leave()
      await expect(straight).resolves.toBe('in')
    }
  })

  test('is waited for by close', async () => {
    const { hf } = service()
    const key = lockKey('close', 1)
    const first = await inside(hf, key)
    let isIn = false
    const next = hf.guard(key, async () => (isIn = true))
    await waiting(hf, key, 1)
    const closed = hf.close()
    first.leave()
    expect(await closed).toEqual({ left: [] })
    expect(isIn).toBe(true)
    await next
  })
})

describe('a wait in the queue ends', () => {
  test('by its limit, counted from the call, and names who holds the lock', async () => {
    const { hf } = service()
    const key = lockKey('limit', 1)
    const first = await inside(hf, key)
    const calls = [300, 300].map((waitMs) => failing(hf.guard(key, async () => 'in', { waitMs })))
    for (const { error, tookMs } of await Promise.all(calls)) {
      expect(error.code).toBe('LOCK_TIMEOUT')
      expect(error.name).toBe('ContentionError')
      expect(named(error).blockers).toMatchObject([{ pid: first.pid, name: 'limit:1' }])
      expect(error.details['ahead']).toBeGreaterThanOrEqual(1)
      expect(tookMs).toBeGreaterThanOrEqual(295)
      inTime(tookMs, 300 + graceMs)
    }
    first.leave()
    await first.ended
  })

  test('what was waited here is not waited once more in PostgreSQL', async () => {
    const { hf } = service()
    const key = lockKey('limit', 2)
    const first = await inside(hf, key)
    const call = failing(hf.guard(key, async () => 'in', { waitMs: 600 }))
    await waiting(hf, key, 1)
    const client = await fixture.observer.connect()
    await client.query('BEGIN')
    const rival = client.query('SELECT pg_advisory_xact_lock($1)', [
      key.lock.kind === 'bigint' ? key.lock.id : 0,
    ])
    await waitUntilBlocked(fixture.observer, (client as unknown as { processID: number }).processID)
    // The rival is next in PostgreSQL's own queue, so that ours waits there for the rest of its time.
    setTimeout(() => first.leave(), 400)
    await rival
    const { error, tookMs } = await call
    await client.query('ROLLBACK')
    client.release()
    expect(error.code).toBe('LOCK_TIMEOUT')
    expect(tookMs).toBeGreaterThanOrEqual(595)
    inTime(tookMs, 600 + graceMs)
  })

  test('64 that end together look for the blocker once', async () => {
    const { pool, driver } = service()
    let looks = 0
    const counting: Driver<pg.PoolClient> = {
      ...driver,
      alone: {
        query: (statement) => {
          looks += 1
          return driver.alone.query(statement)
        },
      },
    }
    const hf = createHoldfast(counting)
    const key = lockKey('together', 1)
    const first = await inside(hf, key)
    const calls = Array.from({ length: 64 }, () =>
      failing(hf.guard(key, async () => 'in', { waitMs: 200 })),
    )
    const ended = await Promise.all(calls)
    for (const { error, tookMs } of ended) {
      expect(error.code).toBe('LOCK_TIMEOUT')
      expect(named(error).blockers[0]?.pid).toBe(first.pid)
      inTime(tookMs, 200 + graceMs)
    }
    expect(looks).toBeLessThanOrEqual(4)
    expect(pool.totalCount).toBeLessThanOrEqual(3)
    first.leave()
    await first.ended
  })

  test('by its signal, at once, and the place is given up', async () => {
    const { hf } = service()
    const key = lockKey('abort', 1)
    const first = await inside(hf, key)
    const abort = new AbortController()
    const gone = failing(hf.guard(key, async () => 'in', { signal: abort.signal }))
    const next = hf.guard(key, async () => 'in')
    await waiting(hf, key, 2)
    const reason = new Error('the client has gone')
    abort.abort(reason)
    expect((await gone).error).toBe(reason)
    await waiting(hf, key, 1)
    first.leave()
    await expect(next).resolves.toBe('in')
    await expect(
      hf.guard(key, async () => 'in', { signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason)
  })

  test('by its deadline, counted from the call', async () => {
    const { hf } = service()
    const key = lockKey('deadline', 1)
    const first = await inside(hf, key)
    const { error, tookMs } = await failing(
      hf.guard(key, async () => 'in', { deadlineMs: 200, waitMs: 20_000 }),
    )
    expect(error.code).toBe('TX_DEADLINE')
    inTime(tookMs, 200 + graceMs)
    first.leave()
    await first.ended
  })

  test('behind a guard that never comes back and does not hold the lock', async () => {
    const { driver } = service()
    const hung = deferred<never>()
    let isFirst = true
    const hanging: Driver<pg.PoolClient> = {
      ...driver,
      // As on a connection to a server that has vanished: nothing comes back.
      transaction: async (body, settings) => {
        if (!isFirst) return await driver.transaction(body, settings)
        isFirst = false
        return await hung.promise
      },
    }
    const hf = createHoldfast(hanging)
    const key = lockKey('vanished', 1)
    const gone = failing(hf.guard(key, async () => 'in'))
    const behind = hf.guard(key, async () => 'in', { waitMs: 200 })
    const later = hf.guard(key, async () => 'in', { waitMs: 5_000 })
    await expect(behind).resolves.toBe('in')
    await expect(later).resolves.toBe('in')
    // The queue flows; what comes back late has no say in it.
    const again = await inside(hf, key)
    hung.reject(new Error('at last'))
    expect((await gone).error.message).toBe('at last')
    expect(keyQueuesOf(hanging).size).toBe(1)
    again.leave()
    await again.ended
    expect(keyQueuesOf(hanging).size).toBe(0)
  })
})

describe('who does not wait in the queue', () => {
  test('waitMs 0 is busy at once, with who really holds the lock', async () => {
    const { hf } = service()
    const key = lockKey('nowait', 1)
    const { pid, letGo } = await heldElsewhere(key)
    // The first here only waits itself.
    const first = hf.guard(key, async () => 'in', { waitMs: 20_000 })
    const { error, tookMs } = await failing(hf.guard(key, async () => 'in', { waitMs: 0 }))
    expect(error.code).toBe('LOCK_BUSY')
    expect(named(error).blockers).toMatchObject([{ pid }])
    inTime(tookMs, graceMs)
    await letGo()
    await expect(first).resolves.toBe('in')
    await expect(hf.guard(key, async () => 'in', { waitMs: 0 })).resolves.toBe('in')
  })

  test("waitMs 'inherit', which may have no end: PostgreSQL's own limit counts", async () => {
    const { hf, pool } = service(4)
    // One that is made to look for the holder may be closed meanwhile.
    pool.on('connect', (client) => {
      client.query('SET lock_timeout = 200').catch(() => undefined)
    })
    const key = lockKey('inherit', 1)
    const first = await inside(hf, key)
    const { error } = await failing(hf.guard(key, async () => 'in', { waitMs: 'inherit' }))
    expect(error.code).toBe('LOCK_TIMEOUT')
    expect(error.details['ahead']).toBeUndefined()
    first.leave()
    await first.ended
  })

  test('a guard inside of its own transaction is refused, and does not wait for itself', async () => {
    const { hf } = service()
    const key = lockKey('nested', 1)
    await expect(hf.guard(key, () => hf.guard(key, async () => 'in'))).rejects.toMatchObject({
      code: 'TX_NESTED',
    })
  })

  test('a guard inside of the same key on another driver ends by its limit', async () => {
    const [outer, inner] = [service(), service()]
    const key = lockKey('nested', 2)
    const nested = outer.hf.guard(key, async () => {
      // Somebody is first there already, and waits for us.
      const rival = failing(inner.hf.guard(key, async () => 'in', { waitMs: 300 }))
      const within = failing(inner.hf.guard(key, async () => 'in', { waitMs: 300 }))
      return [(await rival).error.code, (await within).error.code]
    })
    await expect(nested).resolves.toEqual(['LOCK_TIMEOUT', 'LOCK_TIMEOUT'])
  })

  test('whoever wants several keys waits only for the one that PostgreSQL locks first', async () => {
    const [outer, inner] = [service(), service()]
    const [low, high] = ['a', 'b']
      .map((part) => lockKey('several', part))
      .toSorted((x, y) => (x.lock.id < y.lock.id ? -1 : 1)) as [LockKey, LockKey]
    const holder = await inside(outer.hf, low)
    const both = inner.hf.guard([high, low], async () => 'both', { waitMs: 20_000 })
    const alsoBoth = inner.hf.guard([low, high], async () => 'both', { waitMs: 20_000 })
    await waiting(inner.hf, low, 1)
    // With a place at both keys they would keep back this one, for which the holder may be waiting.
    await expect(inner.hf.guard(high, async () => 'passed')).resolves.toBe('passed')
    holder.leave()
    await expect(Promise.all([both, alsoBoth])).resolves.toEqual(['both', 'both'])
  })
})

describe('the lock is still that of PostgreSQL', () => {
  /** The most that were inside at once, of two processes with many callers each. */
  async function crowd(
    services: readonly Service[],
    key: (at: number) => LockKey,
  ): Promise<number> {
    let [now, most] = [0, 0]
    const start = barrier(services.length * 8)
    const callers = services.flatMap(({ hf }, at) =>
      Array.from({ length: 8 }, async () => {
        await start()
        for (let round = 0; round < 5; round += 1) {
          await hf.guard(
            key(at),
            async (tx) => {
              now += 1
              most = Math.max(most, now)
              await tx.query('SELECT 1')
              now -= 1
            },
            { waitMs: 20_000 },
          )
        }
      }),
    )
    await Promise.all(callers)
    return most
  }

  test('two processes exclude each other', async () => {
    expect(await crowd([service(), service()], () => lockKey('crowd', 1))).toBe(1)
  })

  test('control: the queues alone exclude nobody in another process', async () => {
    expect(await crowd([service(), service()], (at) => lockKey('crowd', 'apart', at))).toBe(2)
  })

  test('two processes with many callers each take turns', async () => {
    const services = [service(), service()]
    const key = lockKey('fair', 1)
    const order: number[] = []
    const start = barrier(2 * 16)
    await Promise.all(
      services.flatMap(({ hf }, at) =>
        Array.from({ length: 16 }, async () => {
          await start()
          await hf.guard(
            key,
            async (tx) => {
              order.push(at)
              await tx.query('SELECT pg_sleep(0.002)')
            },
            { waitMs: 20_000 },
          )
        }),
      ),
    )
    // PostgreSQL's own queue decides between them: while both have callers, neither goes twice in a row for long.
    const half = order.slice(0, 16)
    expect(half.filter((at) => at === 0).length).toBeGreaterThanOrEqual(4)
    expect(half.filter((at) => at === 1).length).toBeGreaterThanOrEqual(4)
  })
})

describe('events of a wait in the queue', () => {
  test('are one request and one end each, and the wait counts from the call', async () => {
    const { hf } = service()
    const key = lockKey('told', 1)
    const first = await inside(hf, key)
    const requested = eventsOn<{ names: string[] }>('holdfast:lock.requested')
    const acquired = eventsOn<{ waitMs: number }>('holdfast:lock.acquired')
    const timeouts = eventsOn<{ waitMs: number; blockers: unknown[] }>('holdfast:lock.timeout')
    const busy = eventsOn('holdfast:lock.busy')
    const failed = eventsOn<{ error: unknown }>('holdfast:lock.failed')
    const released = eventsOn('holdfast:lock.released')
    const abort = new AbortController()
    const next = hf.guard(key, async () => 'in')
    const calls = [
      failing(hf.guard(key, async () => 'in', { waitMs: 250 })),
      failing(hf.guard(key, async () => 'in', { waitMs: 0 })),
      failing(hf.guard(key, async () => 'in', { signal: abort.signal })),
    ]
    await waiting(hf, key, 3)
    expect(requested).toHaveLength(4)
    abort.abort(new Error('gone'))
    await Promise.all(calls)
    first.leave()
    await next
    expect(requested).toHaveLength(4)
    expect([timeouts.length, busy.length, failed.length, acquired.length]).toEqual([1, 1, 1, 1])
    expect(timeouts[0]?.waitMs).toBeGreaterThanOrEqual(245)
    expect(timeouts[0]?.blockers).toHaveLength(1)
    expect(acquired[0]?.waitMs).toBeGreaterThanOrEqual(245)
    expect(released).toHaveLength(1)
  })
})
