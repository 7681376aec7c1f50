import type { PoolClient } from 'pg'
import { describe, expect, test } from 'vitest'
import type { HoldfastError } from '../../../src/errors.ts'
import { lockKey } from '../../../src/index.ts'
import { callerTransaction, pgFixture, pidOf } from '../../support/pg-fixture.ts'
import { inTime, named } from '../../support/in-time.ts'

const fixture = pgFixture()
const limitMs = 300
const graceMs = 150

async function failing(
  call: () => Promise<unknown>,
): Promise<{ error: HoldfastError; afterMs: number }> {
  const began = performance.now()
  const error = await call().then(
    () => expect.unreachable('the lock was granted'),
    (reason: unknown) => reason as HoldfastError,
  )
  return { error, afterMs: performance.now() - began }
}

async function settingOf(client: PoolClient, name: string): Promise<string> {
  const { rows } = await client.query('SELECT current_setting($1) AS value', [name])
  return rows[0].value
}

describe('a wait with a limit', () => {
  test.each([1, 5])('of %i key(s) ends just after it and names the blocker', async (count) => {
    const holder = await callerTransaction(fixture)
    const waiter = await callerTransaction(fixture)
    const keys = Array.from({ length: count }, (_, n) => lockKey('slow', count, n))
    await fixture.hf.locks.acquire(holder, keys)
    const { error, afterMs } = await failing(() =>
      fixture.hf.locks.acquire(waiter, keys, { waitMs: limitMs }),
    )
    expect(error.code).toBe('LOCK_TIMEOUT')
    expect(error.name).toBe('ContentionError')
    expect(afterMs).toBeGreaterThanOrEqual(limitMs - 5)
    inTime(afterMs, limitMs + graceMs)
    expect(named(error).blockers).toHaveLength(1)
    expect(error.blockers[0]).toMatchObject({
      pid: await pidOf(holder),
      name: count === 1 ? `slow:${count}:0` : `slow:${count}:0 +4`,
      state: 'idle in transaction',
    })
    expect(error.blockers[0]?.ageMs).toBeGreaterThan(limitMs - 5)
    expect(error.message).toContain('Held by pid')
  })

  test('is one limit for all keys, though PostgreSQL counts each lock for itself', async () => {
    const keys = ['a', 'b', 'c'].map((part) => lockKey('each', part))
    const sorted = keys.toSorted((x, y) =>
      'id' in x.lock && 'id' in y.lock && x.lock.id > y.lock.id ? 1 : -1,
    )
    const [first, second] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    await fixture.hf.locks.acquire(first, sorted[0] as never)
    await fixture.hf.locks.acquire(second, sorted[1] as never)
    const waiter = await callerTransaction(fixture)
    // The first key comes free after two thirds of the limit; the second never does.
    const release = setTimeout(() => void first.query('COMMIT'), (limitMs * 2) / 3)
    const { error, afterMs } = await failing(() =>
      fixture.hf.locks.acquire(waiter, keys, { waitMs: limitMs }),
    )
    clearTimeout(release)
    expect(error.code).toBe('LOCK_TIMEOUT')
    inTime(afterMs, limitMs + graceMs)
  })

  test('of zero does not wait, and keeps the transaction usable', async () => {
    const holder = await callerTransaction(fixture)
    const waiter = await callerTransaction(fixture)
    const key = lockKey('zero', 1)
    await fixture.hf.locks.acquire(holder, key)
    const { error, afterMs } = await failing(() =>
      fixture.hf.locks.acquire(waiter, key, { waitMs: 0 }),
    )
    expect(error.code).toBe('LOCK_BUSY')
    expect(named(error).blockers[0]?.pid).toBe(await pidOf(holder))
    inTime(afterMs, graceMs)
    await waiter.query('SELECT 1')
  })

  test('of zero is busy also for the first acquisition of a driver', async () => {
    const holder = await callerTransaction(fixture)
    const key = lockKey('zero', 'cold')
    await fixture.hf.locks.acquire(holder, key)
    const waiter = await callerTransaction(fixture)
    const busy = { code: 'LOCK_BUSY' }
    const cold = (): ReturnType<typeof fixture.create> => fixture.create()
    await expect(cold().guard(key, async () => 'in', { waitMs: 0 })).rejects.toMatchObject(busy)
    await expect(cold().locks.acquire(waiter, key, { waitMs: 0 })).rejects.toMatchObject(busy)
    expect(await cold().locks.tryAcquire(waiter, key)).toBe(false)
  })

  test("'inherit' leaves the transaction's own lock_timeout in force", async () => {
    const holder = await callerTransaction(fixture)
    const waiter = await callerTransaction(fixture)
    const key = lockKey('inherit', 1)
    await fixture.hf.locks.acquire(holder, key)
    await waiter.query(`SET LOCAL lock_timeout = ${limitMs}`)
    const { error, afterMs } = await failing(() =>
      fixture.hf.locks.acquire(waiter, key, { waitMs: 'inherit' }),
    )
    expect(error.code).toBe('LOCK_TIMEOUT')
    inTime(afterMs, limitMs + graceMs)
  })

  test.each([-1, 1.5, Number.NaN, 2 ** 31])('refuses a limit of %d', async (waitMs) => {
    const client = await callerTransaction(fixture)
    await expect(
      fixture.hf.locks.acquire(client, lockKey('odd', 1), { waitMs }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe("the caller's settings", () => {
  test.each(['0', '7s', '1min', '1d'])(
    'lock_timeout %s is restored after a grant',
    async (value) => {
      const client = await callerTransaction(fixture)
      await client.query(`SET LOCAL lock_timeout = '${value}'`)
      await fixture.hf.locks.acquire(client, lockKey('restore', value), { waitMs: 250 })
      expect(await settingOf(client, 'lock_timeout')).toBe(value)
      const many = [lockKey('restore', value, 1), lockKey('restore', value, 2)]
      await fixture
        .create({ locks: { strict: false } })
        .locks.acquire(client, many, { waitMs: 250 })
      expect(await settingOf(client, 'lock_timeout')).toBe(value)
    },
  )

  test('keepTransaction keeps the transaction, its settings and its earlier locks', async () => {
    const holder = await callerTransaction(fixture)
    const waiter = await callerTransaction(fixture)
    const [early, late] = ['a', 'b']
      .map((part) => lockKey('keep', part))
      .toSorted((x, y) => ('id' in x.lock && 'id' in y.lock && x.lock.id > y.lock.id ? 1 : -1))
    await fixture.hf.locks.acquire(holder, late as never)
    await waiter.query("SET LOCAL lock_timeout = '7s'")
    await fixture.hf.locks.acquire(waiter, early as never)
    const { error } = await failing(() =>
      fixture.hf.locks.acquire(waiter, late as never, { waitMs: limitMs, keepTransaction: true }),
    )
    expect(error.code).toBe('LOCK_TIMEOUT')
    expect(named(error).blockers[0]?.pid).toBe(await pidOf(holder))
    expect(await settingOf(waiter, 'lock_timeout')).toBe('7s')
    await fixture.hf.locks.assertHeld(waiter, early as never)
    await holder.query('COMMIT')
    await fixture.hf.locks.acquire(waiter, late as never, {
      waitMs: limitMs,
      keepTransaction: true,
    })
    await fixture.hf.locks.assertHeld(waiter, late as never)
    await waiter.query('COMMIT')
  })

  test('control: without keepTransaction the transaction is aborted by the timeout', async () => {
    const holder = await callerTransaction(fixture)
    const waiter = await callerTransaction(fixture)
    const key = lockKey('keep', 'control')
    await fixture.hf.locks.acquire(holder, key)
    await failing(() => fixture.hf.locks.acquire(waiter, key, { waitMs: 50 }))
    await expect(waiter.query('SELECT 1')).rejects.toMatchObject({ code: '25P02' })
  })

  test('nothing is left on the connection after the transaction', async () => {
    const client = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(client, [lockKey('left', 1), lockKey('left', 2)])
    const pid = await pidOf(client)
    expect(await applicationNameOf(pid)).toMatch(/^suite hf:left:1 \+1$/)
    await client.query('COMMIT')
    // Through a pooler the next statement may run elsewhere; that backend is clean as well.
    expect(await settingOf(client, 'lock_timeout')).toBe('0')
    expect(await settingOf(client, 'application_name')).toBe('suite')
    expect(await settingOf(client, 'holdfast.held').catch(() => '')).toBe('')
    expect(await applicationNameOf(pid)).toBe('suite')
    const { rows } = await fixture.observer.query(
      "SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = $1",
      [pid],
    )
    expect(rows).toHaveLength(0)
  })

  async function applicationNameOf(pid: number): Promise<string> {
    const { rows } = await fixture.observer.query(
      'SELECT application_name FROM pg_stat_activity WHERE pid = $1',
      [pid],
    )
    return rows[0].application_name
  }

  test('the name in pg_stat_activity can be switched off', async () => {
    const client = await callerTransaction(fixture)
    const quiet = fixture.create({ locks: { annotate: false } })
    await quiet.locks.acquire(client, lockKey('quiet', 1))
    expect(await applicationNameOf(await pidOf(client))).toBe('suite')
  })
})
