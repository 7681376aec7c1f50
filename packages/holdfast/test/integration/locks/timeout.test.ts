import { waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { Pool, type PoolClient } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { HoldfastError } from '../../../src/errors.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, lockKey, shared } from '../../../src/index.ts'
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
    expect(error.message).toContain('Blocked by pid')
  })

  test.each([
    [{ lock_timeout: '150ms', statement_timeout: '0' }, 'lock_timeout'],
    [{ lock_timeout: '0', statement_timeout: '200ms' }, 'statement_timeout'],
    [{ lock_timeout: '10s', statement_timeout: '10s' }, 'wait'],
  ])(
    'says by which of the settings of its transaction it was ended: %o',
    async (settings, endedBy) => {
      // Those of other connections are another matter.
      const pool = new Pool({
        connectionString: fixture.database.directUrl,
        max: 3,
        statement_timeout: 300,
      })
      onTestFinished(async () => await pool.end())
      const hf = createHoldfast(fromPg(pool))
      const key = lockKey('whose-settings', 1)
      const holder = await callerTransaction(fixture)
      await fixture.hf.locks.acquire(holder, key)
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        for (const [name, value] of Object.entries(settings)) {
          await client.query(`SET LOCAL ${name} = '${value}'`)
        }
        const acquiring = hf.locks.acquire(client, key, endedBy === 'wait' ? { wait: 250 } : {})
        const { error } = await failing(() => acquiring)
        expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', details: { endedBy } })
      } finally {
        await client.query('ROLLBACK')
        client.release()
      }
    },
  )

  test.each([
    ['several keys', 2, {}],
    ['its settings alone', 1, { wait: 'inherit' }],
  ] as const)(
    'says nothing of settings that it has not asked for: %s',
    async (_, count, options) => {
      const pool = new Pool({
        connectionString: fixture.database.directUrl,
        max: 3,
        lock_timeout: 200,
      })
      onTestFinished(async () => await pool.end())
      const hf = createHoldfast(fromPg(pool))
      const keys = Array.from({ length: count }, (__, at) => lockKey('unasked', `${count}:${at}`))
      const holder = await callerTransaction(fixture)
      await fixture.hf.locks.acquire(holder, keys)
      const { error } = await failing(() =>
        hf.transaction(async (tx) => {
          await tx.query('SET LOCAL lock_timeout = 0')
          await tx.query(`SET LOCAL statement_timeout = '225ms'`)
          await hf.locks.acquire(tx, keys, options)
        }),
      )
      expect(error.code).toBe('LOCK_TIMEOUT')
      expect(['statement_timeout', undefined]).toContain(error.details['endedBy'])
    },
  )

  test('of a guard that somebody cancels is no timeout', async () => {
    const key = lockKey('cancelled', 1)
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const waiting = failing(() => fixture.hf.guard(key, async () => undefined, { wait: '20 s' }))
    const pid = await waitUntil('it waits', async () => {
      const { rows } = await fixture.observer.query<{ pid: number }>(
        `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
      return rows[0]?.pid
    })
    await fixture.observer.query('SELECT pg_cancel_backend($1)', [pid])
    const { error } = await waiting
    expect(error).toMatchObject({ code: '57014' })
  })

  test('in shared mode names who waits to have it alone, and not those who share it', async () => {
    const { acquire } = fixture.hf.locks
    const key = lockKey('shared', 1)
    const holder = await callerTransaction(fixture)
    await acquire(holder, shared(key))
    const writer = await callerTransaction(fixture)
    const writerPid = await pidOf(writer)
    const writing = acquire(writer, key, { wait: '20 s' })
    await waitUntilBlocked(fixture.observer, writerPid)
    // Only who has waited for longer is named, by more than the look may be late.
    await fixture.observer.query('SELECT pg_sleep(0.15)')
    const reader = await callerTransaction(fixture)
    const { error } = await failing(() => acquire(reader, shared(key), { wait: limitMs }))
    expect(named(error).blockers.map(({ pid }) => pid)).toEqual([writerPid])
    expect(error.blockers).toHaveLength(1)
    const other = await callerTransaction(fixture)
    const { error: alone } = await failing(() => acquire(other, key, { wait: limitMs }))
    expect(named(alone).blockers.map(({ pid }) => pid)).toEqual([await pidOf(holder)])
    await holder.query('COMMIT')
    await writing
  })

  test('in shared mode does not name who came to wait later', async () => {
    const { acquire } = fixture.hf.locks
    const key = lockKey('shared', 'behind')
    const holder = await callerTransaction(fixture)
    await acquire(holder, key)
    const reader = await callerTransaction(fixture)
    const readerPid = await pidOf(reader)
    const reading = failing(() => acquire(reader, shared(key), { wait: 1_000 }))
    await waitUntilBlocked(fixture.observer, readerPid)
    const writer = await callerTransaction(fixture)
    const writerPid = await pidOf(writer)
    const writing = acquire(writer, key, { wait: '20 s' })
    await waitUntilBlocked(fixture.observer, writerPid)
    const { error } = await reading
    expect(named(error).blockers.map(({ pid }) => pid)).toEqual([await pidOf(holder)])
    await holder.query('COMMIT')
    await writing
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
