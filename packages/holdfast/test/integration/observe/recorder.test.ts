/** Names and minutes of a process, written behind its work: whole, bounded, and never in anybody's way. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { deferred, sample, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { EventMap } from '../../../src/core/events/event-map.ts'
import { lockMemoryOf } from '../../../src/core/locks/lock-memory.ts'
import type { Driver, Statement } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, legacyKey, lockKey } from '../../../src/index.ts'
import { LockCounts } from '../../../src/observe/locks/lock-counts.ts'
import {
  type Recorder,
  type RecorderOptions,
  startRecorder,
} from '../../../src/observe/locks/recorder.ts'
import { everyClient } from '../../support/every-client.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, eventsOn } from '../../support/pg-fixture.ts'
import { inTime } from '../../support/in-time.ts'

const fixture = ledgerFixture()
const running = new Set<Recorder>()
afterEach(async () => {
  for (const recorder of running) await recorder.stop()
  running.clear()
})

interface Place {
  readonly driver: Driver<pg.PoolClient>
  readonly hf: Holdfast<pg.PoolClient>
  /** Statements that were sent outside of transactions. */
  readonly sent: Statement[]
  record(options?: RecorderOptions): Promise<Recorder>
}

/** A driver of its own, whose statements are seen. */
function place(pool = fixture.pool): Place {
  const bare = fromPg(pool)
  const sent: Statement[] = []
  const driver: Driver<pg.PoolClient> = {
    ...bare,
    alone: {
      query: (statement) => {
        sent.push(statement)
        return bare.alone.query(statement)
      },
    },
  }
  return {
    driver,
    hf: createHoldfast(driver),
    sent,
    async record(options) {
      const recorder = await startRecorder(driver, options)
      running.add(recorder)
      return recorder
    },
  }
}

const names = async (namespace: string): Promise<string[]> => {
  const { rows } = await fixture.observer.query<{ name: string }>(
    'SELECT name FROM holdfast.lock_name WHERE namespace = $1 ORDER BY name',
    [namespace],
  )
  return rows.map(({ name }) => name)
}

interface Minute {
  readonly acquired: number
  readonly timeouts: number
  readonly busy: number
  readonly waits: number
  readonly holds: number
  readonly wait_max: number
}

/** Over all minutes, in case one ended meanwhile. */
const minutes = async (namespace: string): Promise<Minute> => {
  const { rows } = await fixture.observer.query<Minute>(
    `SELECT sum(acquired)::int AS acquired, sum(timeouts)::int AS timeouts, sum(busy)::int AS busy,
       sum((SELECT sum(n) FROM unnest(wait) AS n))::int AS waits,
       sum((SELECT sum(n) FROM unnest(hold) AS n))::int AS holds, max(wait_max_ms) AS wait_max
     FROM holdfast.lock_minute WHERE namespace = $1`,
    [namespace],
  )
  return rows[0] as Minute
}

test('names and minutes are written every so often, and the rest at the end', async () => {
  const { hf, record } = place()
  const namespace = fresh()
  const recorder = await record({ every: '100 ms' })
  for (const id of [1, 2]) await hf.guard(lockKey(namespace, id), async () => undefined)
  await waitUntil('names', async () => ((await names(namespace)).length === 2 ? true : undefined))
  const held = lockKey(namespace, 3)
  const holder = await callerTransaction(fixture)
  await hf.locks.acquire(holder, held)
  await expect(hf.guard(held, async () => undefined, { waitMs: 200 })).rejects.toThrow('TIMEOUT')
  await expect(hf.guard(held, async () => undefined, { waitMs: 0 })).rejects.toThrow('BUSY')
  await recorder.stop()
  expect(await names(namespace)).toEqual([1, 2, 3].map((id) => `${namespace}:${id}`))
  const counted = await minutes(namespace)
  // A lock in a transaction of the caller's is acquired, and its end is not seen.
  expect(counted).toMatchObject({ acquired: 3, timeouts: 1, busy: 1, waits: 4, holds: 2 })
  // The rest of the 200 went into the connection.
  expect(counted.wait_max).toBeGreaterThanOrEqual(100)
})

test('whoever waits has a name within two seconds, however seldom it is written', async () => {
  const { hf, record } = place()
  await record({ every: '1 h' })
  const namespace = fresh()
  const holder = await callerTransaction(fixture)
  // By hand, so that only the one who waits can have told the name.
  const key = lockKey(namespace, 1)
  if (key.lock.kind !== 'bigint') throw new Error('a bigint is expected')
  await holder.query('SELECT pg_advisory_xact_lock($1)', [String(key.lock.id)])
  const began = performance.now()
  const waiting = hf.guard(key, async () => undefined)
  const name = await waitUntil('the name', async () => (await names(namespace))[0])
  inTime(performance.now() - began, 2_000)
  expect(name).toBeDefined()
  await holder.query('COMMIT')
  await waiting
})

test('a name is not written again for a minute, and not looked for again either', async () => {
  const { hf, record, sent } = place()
  const namespace = fresh()
  const recorder = await record({ every: '100 ms' })
  const recorded = eventsOn<EventMap['observe.recorded']>('holdfast:observe.recorded')
  for (let round = 1; round <= 3; round += 1) {
    await hf.guard(lockKey(namespace, 1), async () => undefined)
    await waitUntil('a write', () => (recorded.length >= round ? true : undefined))
  }
  await recorder.stop()
  const written = sent.filter(({ values }) => String(values[0]).includes(namespace))
  expect(written).toHaveLength(1)
  expect((await minutes(namespace)).acquired).toBe(3)
})

test('nothing used, nothing sent', async () => {
  const { record, sent } = place()
  const recorder = await record({ every: '100 ms' })
  const other = place()
  await other.record({ every: '100 ms' })
  const recorded = eventsOn<EventMap['observe.recorded']>('holdfast:observe.recorded')
  await other.hf.guard(lockKey(fresh(), 1), async () => undefined)
  await waitUntil('the other one writes', () => recorded[0])
  await recorder.stop()
  // The first one says that the tables are there.
  expect(sent).toHaveLength(1)
})

test('two databases in one process are told apart', async () => {
  const [one, other] = [place(), place()]
  const recorders = [await one.record(), await other.record()]
  const namespace = fresh()
  await one.hf.guard(lockKey(namespace, 1), async () => undefined)
  for (const recorder of recorders) await recorder.stop()
  expect((await minutes(namespace)).acquired).toBe(1)
  expect(other.sent.filter(({ values }) => String(values).includes(namespace))).toEqual([])
})

test('it belongs to nobody’s transaction and to nobody’s trace', async () => {
  const trace = new AsyncLocalStorage<string>()
  const traces: (string | undefined)[] = []
  const { driver, hf, record } = place()
  const { query } = driver.alone
  Object.assign(driver.alone, {
    query: (statement: Statement) => {
      traces.push(trace.getStore())
      return query(statement)
    },
  })
  await record({ every: '100 ms' })
  const recorded = eventsOn<EventMap['observe.recorded']>('holdfast:observe.recorded')
  await trace.run('mine', () =>
    hf.guard(lockKey(fresh(), 1), async () => {
      await waitUntil('a write while the guard is open', () => recorded[0])
    }),
  )
  expect(traces.length).toBeGreaterThan(1)
  expect(new Set(traces)).toEqual(new Set([undefined]))
})

describe('trouble', () => {
  test('is an event; callers notice nothing and counts are not lost', async () => {
    const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 4 })
    onTestFinished(() => pool.end())
    const { hf, record, driver } = place(pool)
    const namespace = fresh()
    const recorder = await record({ every: '100 ms' })
    const { query } = driver.alone
    Object.assign(driver.alone, { query: () => Promise.reject(new Error('unreachable')) })
    const trouble = eventsOn<EventMap['observe.trouble']>('holdfast:observe.trouble')
    await hf.guard(lockKey(namespace, 1), async () => undefined)
    expect(await waitUntil('an event', () => trouble[0])).toMatchObject({ during: 'record' })
    await hf.guard(lockKey(namespace, 2), async () => undefined)
    Object.assign(driver.alone, { query })
    await recorder.stop()
    expect((await minutes(namespace)).acquired).toBe(2)
    expect(await names(namespace)).toHaveLength(2)
  })

  test('without the tables it does not begin', async () => {
    const { driver } = place()
    await expect(startRecorder(driver, { schema: 'nowhere' })).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
    })
    expect(lockMemoryOf(driver).listener).toBeUndefined()
  })

  test('two at once, too often, and inside a transaction are refused', async () => {
    const { hf, record } = place()
    const recorder = await record()
    await expect(record()).rejects.toMatchObject({ code: 'OBSERVE_RECORDING' })
    await recorder.stop()
    await recorder.stop()
    await expect(record({ every: 99 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(hf.transaction(async () => await record())).rejects.toMatchObject({
      code: 'TX_NESTED',
    })
    await record()
  })

  test('a write that hangs is not joined by another', async () => {
    const { hf, record, driver } = place()
    await record({ every: '100 ms' })
    const stuck = deferred<[]>()
    let calls = 0
    const { query } = driver.alone
    Object.assign(driver.alone, {
      query: (statement: Statement) => {
        calls += 1
        return calls === 1 ? stuck.promise : query(statement)
      },
    })
    const recorded = eventsOn<EventMap['observe.recorded']>('holdfast:observe.recorded')
    await hf.guard(lockKey(fresh(), 1), async () => undefined)
    await waitUntil('the first write', () => (calls === 1 ? true : undefined))
    // A recorder that did not wait would have sent these by the time another one has written twice.
    const other = place()
    await other.record({ every: '100 ms' })
    for (const round of [1, 2]) {
      await hf.guard(lockKey(fresh(), 1), async () => undefined)
      await other.hf.guard(lockKey(fresh(), 1), async () => undefined)
      await waitUntil('the other writes', () => (recorded.length >= round ? true : undefined))
    }
    expect(calls).toBe(1)
    stuck.resolve([])
    await waitUntil('the next write', () => (calls === 2 ? true : undefined))
  })
})

describe.each(sample(Object.entries(everyClient), 3, 1))('through %s', (_, open) => {
  test('names and minutes are written', async () => {
    const client = await open(fixture.database.url)
    onTestFinished(async () => {
      await client.end()
    })
    const namespace = fresh()
    await using recorder = await startRecorder(client.driver)
    const keys = [lockKey(namespace, 1), legacyKey.hashtext(namespace), legacyKey.pair(-7, 7)]
    await createHoldfast(client.driver).guard(keys, async () => undefined)
    await recorder.stop()
    expect(await names(namespace)).toEqual([`${namespace}:1`])
    expect(await names('legacy')).toEqual(
      expect.arrayContaining([`legacy:hashtext(${namespace})`, 'legacy:-7,7']),
    )
    expect(await minutes(namespace)).toMatchObject({ acquired: 1, holds: 1 })
  })
})

describe('a million different keys', () => {
  test('take a bounded memory, in names and in namespaces', async () => {
    const { driver, record, sent } = place()
    await record({ every: '100 ms' })
    const memory = lockMemoryOf(driver)
    const { listener } = memory
    if (listener === undefined) throw new Error('nobody listens')
    const seen = (): number => [...memory.since()].length
    globalThis.gc?.()
    for (let at = 0; at < 1_000_000; at += 1) {
      const key = keyAt(at)
      const locks = [{ key, mode: 'exclusive' as const }]
      memory.note(key)
      listener.requested(locks, performance.now())
      listener.acquired(locks, 1)
      listener.released(locks, 1)
    }
    expect(seen()).toBeLessThanOrEqual(10_000)
    await waitUntil('two writes', () => (sent.length >= 3 ? true : undefined))
    const written = sent
      .slice(1)
      .map(({ values }) => values.map((json) => JSON.parse(String(json))))
    for (const [entries, counts] of written as unknown[][][]) {
      expect(entries?.length).toBeLessThanOrEqual(250)
      expect(counts?.length).toBeLessThanOrEqual(201)
    }
    const { rows } = await fixture.observer.query<{ names: number; minutes: number }>(
      `SELECT (SELECT count(*) FROM holdfast.lock_name)::int AS names,
         (SELECT max(n) FROM (SELECT count(*) AS n FROM holdfast.lock_minute GROUP BY minute) m)::int AS minutes`,
    )
    expect(rows[0]?.names).toBeLessThanOrEqual(10_000)
    expect(rows[0]?.minutes).toBeLessThanOrEqual(101)
  }, 60_000)

  test('control: without a bound there would be as many namespaces as keys', () => {
    const counts = new LockCounts(Number.POSITIVE_INFINITY)
    const bounded = new LockCounts()
    for (let at = 0; at < 5_000; at += 1) {
      for (const each of [counts, bounded])
        each.acquired([{ key: keyAt(at), mode: 'exclusive' }], 1)
    }
    const taken = bounded.take()
    expect([counts.take().length, taken.length]).toEqual([5_000, 201])
    expect(taken.reduce((sum, { acquired }) => sum + acquired, 0)).toBe(5_000)
  })
})

/** Not hashed: that is another test's business, and takes most of the time. */
function keyAt(at: number): ReturnType<typeof lockKey> {
  const name = `n${at}:1`
  return {
    name,
    namespace: `n${at}`,
    lock: { kind: 'bigint', id: BigInt(at) },
    scope: name,
  } as ReturnType<typeof lockKey>
}
