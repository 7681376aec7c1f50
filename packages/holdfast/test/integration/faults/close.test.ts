import { deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

/** One call ends what runs in a process, gives back what it holds, and says what it had to leave. */
const fixture = ledgerFixture()

function opened(): { hf: Holdfast<pg.PoolClient>; pool: pg.Pool } {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 12 })
  onTestFinished(() => pool.end())
  return { pool, hf: createHoldfast(fromPg(pool)) }
}

test('nothing to end', async () => {
  expect(await opened().hf.close()).toEqual({ left: [] })
})

test('everything that runs ends, and what was held is free for others', async () => {
  const { hf, pool } = opened()
  const name = fresh()
  const work = hf.work<number>({ queue: name })
  const handling = deferred<AbortSignal>()
  await work.enqueue({ payload: 1 })
  await work.run({
    handler: async (_, { signal }) => {
      handling.resolve(signal)
      await untilAborted(signal)
    },
  })
  const ticking = deferred()
  hf.schedule({
    name,
    every: '1 min',
    guarantee: 'at-least-once',
    handler: async ({ signal }) => {
      ticking.resolve()
      await untilAborted(signal)
    },
  }).start()
  const leading = deferred()
  const led = hf.leader({ name: `${name} leader` }).run(async ({ signal }) => {
    leading.resolve()
    await untilAborted(signal).catch(() => undefined)
  })
  const quota = hf.quota({ name, limit: 10, per: 'lifetime' })
  const holding = deferred()
  const held = quota
    .withHold('key', { estimate: 4, ttl: '1 h', operationId: fresh() }, async ({ signal }) => {
      holding.resolve()
      await untilAborted(signal)
    })
    .catch((error: unknown) => error)
  hf.ledger.startSweeper()
  await hf.observe.record()
  const lease = await hf.leases.acquire(name)
  const inside = deferred()
  const done = deferred()
  const guarded = hf.guard(lockKey('close', name), async () => {
    inside.resolve()
    await done.promise
    return 'committed'
  })
  await Promise.all([handling, leading, holding, inside].map(({ promise }) => promise))

  const closing = hf.close({ within: '300 ms', leaveAfter: '5 s' })
  done.resolve()
  expect(await closing).toEqual({ left: [] })

  expect(await guarded).toBe('committed')
  expect(await held).toMatchObject({ code: 'HOLDFAST_CLOSING' })
  expect((await handling.promise).reason).toMatchObject({ code: 'CLAIM_STOPPED' })
  expect(lease.signal.aborted).toBe(true)
  await led
  // Others have all of it at once, without waiting for anything to expire.
  const other = createHoldfast(fromPg(fixture.pool))
  expect(await other.leases.read(name)).toMatchObject({ state: 'free' })
  expect(await other.leases.read(`${name} leader`)).toMatchObject({ state: 'free' })
  expect(await other.work({ queue: name }).claim(1)).toHaveLength(1)
  const all = await other.quota({ name, limit: 10, per: 'lifetime' }).consume('key', 10, {
    operationId: fresh(),
  })
  expect(all.ok).toBe(true)
  await waitUntil('all connections are idle', () => pool.idleCount === pool.totalCount || undefined)
  expect(await hf.close()).toEqual({ left: [] })
})

describe('operations of the ledger', () => {
  /** Four that wait for somebody: some were sent, the others are in line behind them. */
  async function waiting(hf: Holdfast<pg.PoolClient>): Promise<{
    readonly asked: Promise<unknown>
    readonly letGo: () => Promise<void>
  }> {
    const name = fresh()
    const quota = hf.quota({ name, limit: 10, per: 'lifetime' })
    await quota.consume('key', 1, { operationId: fresh() })
    const blocker = await fixture.observer.connect()
    onTestFinished(() => blocker.release(true))
    await blocker.query('BEGIN')
    await blocker.query('SELECT FROM holdfast.balance FOR UPDATE')
    const ask = (): Promise<unknown> => quota.consume('key', 1, { operationId: fresh() })
    const first = [ask(), ask()]
    await waitUntil('one of them waits', async () => {
      const { rowCount } = await fixture.observer.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      return rowCount === 0 ? undefined : true
    })
    const asked = Promise.all([...first, ask(), ask()])
    return { asked, letGo: async () => void (await blocker.query('ROLLBACK')) }
  }

  test('are waited for, those in line as well', async () => {
    const { hf, pool } = opened()
    const { asked, letGo } = await waiting(hf)
    const closed = hf.close().then(() => pool.waitingCount + pool.totalCount - pool.idleCount)
    await letGo()
    expect(await closed).toBe(0)
    expect(await asked).toMatchObject(Array(4).fill({ ok: true }))
  })

  test('are told if they take too long', async () => {
    const { hf } = opened()
    const { asked, letGo } = await waiting(hf)
    const { left } = await hf.close({ within: '10 ms', leaveAfter: '10 ms' })
    expect(left).toEqual([{ what: 'operation', name: '' }])
    await letGo()
    await asked
  })
})

describe('what does not end in time', () => {
  test('is told', async () => {
    const { hf } = opened()
    const name = fresh()
    const never = deferred()
    const entered = [deferred(), deferred()]
    const guarded = hf.guard(lockKey('close', name), async () => {
      entered[0]?.resolve()
      await never.promise
    })
    const work = hf.work<number>({ queue: name })
    await work.enqueue({ payload: 1 })
    await work.run({
      handler: async () => {
        entered[1]?.resolve()
        await never.promise
      },
    })
    await Promise.all(entered.map(({ promise }) => promise))
    const { left } = await hf.close({ within: '20 ms', leaveAfter: '20 ms' })
    expect(left).toEqual(
      expect.arrayContaining([
        { what: 'transaction', name: '' },
        { what: 'worker', name },
      ]),
    )
    never.resolve()
    await guarded
  })

  test('control: without close, others wait until the lease is over', async () => {
    const { hf } = opened()
    const name = fresh()
    const lease = await hf.leases.acquire(name, { ttl: '1 min' })
    const other = createHoldfast(fromPg(fixture.pool))
    expect(await other.leases.tryAcquire(name)).toBeUndefined()
    await hf.close()
    const taken = await other.leases.tryAcquire(name)
    expect(taken?.token).toBeGreaterThan(lease.token)
    await taken?.release()
  })
})

describe('a lease that was given back in a transaction', () => {
  test('is given back by close if that was rolled back', async () => {
    const { hf, pool } = opened()
    const name = fresh()
    const lease = await hf.leases.acquire(name, { ttl: '1 min' })
    const undone = hf.transaction(async (tx) => {
      expect(await lease.release(tx)).toBe(true)
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect(String(lease.signal.reason)).toContain('when its transaction commits')
    const other = createHoldfast(fromPg(pool))
    expect(await other.leases.read(name)).toMatchObject({ state: 'held' })
    expect(await hf.close()).toEqual({ left: [] })
    expect(await other.leases.read(name)).toMatchObject({ state: 'free' })
  })

  test('is left alone by close if somebody else has it by now', async () => {
    const { hf, pool } = opened()
    const name = fresh()
    const lease = await hf.leases.acquire(name, { ttl: '1 min' })
    await hf.transaction((tx) => lease.release(tx))
    const other = createHoldfast(fromPg(pool))
    await using next = await other.leases.acquire(name)
    expect(await hf.close()).toEqual({ left: [] })
    expect(await next.renew()).toBe(true)
  })

  test('and a release that has failed is made up for', async () => {
    const { hf, pool } = opened()
    const name = fresh()
    const lease = await hf.leases.acquire(name, { ttl: '1 min' })
    const client = await pool.connect()
    await expect(lease.release(client)).rejects.toMatchObject({ code: 'LEASE_OUTSIDE_TRANSACTION' })
    client.release()
    expect(await hf.close()).toEqual({ left: [] })
    expect(await createHoldfast(fromPg(pool)).leases.read(name)).toMatchObject({ state: 'free' })
  })
})

describe('what was left behind before close', () => {
  const soon = { within: 1, leaveAfter: 1 } as const

  test.each([true, false])('by a worker that was stopped; still at work: %s', async (stays) => {
    const { hf } = opened()
    const name = fresh()
    const work = hf.work<number>({ queue: name })
    const handling = deferred()
    const mayEnd = deferred()
    await work.enqueue({ payload: 1 })
    const worker = await work.run({
      handler: async () => {
        handling.resolve()
        await mayEnd.promise
      },
    })
    await handling.promise
    expect(await worker.stop(soon)).toEqual({ left: 1 })
    if (!stays) mayEnd.resolve()
    const { left } = await hf.close(stays ? soon : {})
    expect(left).toEqual(stays ? [{ what: 'worker', name }] : [])
    mayEnd.resolve()
  })

  test.each([true, false])('by a leader that was left; still at work: %s', async (stays) => {
    const { hf } = opened()
    const name = fresh()
    const leading = deferred()
    const mayEnd = deferred()
    const stop = new AbortController()
    const running = hf.leader({ name }).run(
      async () => {
        leading.resolve()
        await mayEnd.promise
      },
      { signal: stop.signal, leaveAfter: 1 },
    )
    await leading.promise
    stop.abort()
    await expect(running).rejects.toMatchObject({ code: 'LEASE_TERM_LEFT' })
    if (!stays) mayEnd.resolve()
    const { left } = await hf.close(stays ? soon : {})
    const named = { what: 'leader', name, error: { code: 'LEASE_TERM_LEFT' } }
    expect(left).toMatchObject(stays ? [named] : [])
    expect(left).toHaveLength(stays ? 1 : 0)
    mayEnd.resolve()
  })
})

async function untilAborted(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    const end = (): void => reject(signal.reason as Error)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
