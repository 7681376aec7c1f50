/** Waits that ended too late, never, or without a word; each test has the id of its finding. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { createRows } from '../../../src/entries/rows.ts'
import { inTime, named } from '../../support/in-time.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { sleepThrough, weekly } from '../schedule/schedule-room.ts'
import { callerTransaction, pgFixture, pidOf } from '../../support/pg-fixture.ts'

const fixture = pgFixture(
  'CREATE TABLE t (id int PRIMARY KEY, version int NOT NULL DEFAULT 1, note text); INSERT INTO t VALUES (1), (2)',
  'installed',
)
const graceMs = 150

async function failing(
  call: () => Promise<unknown>,
): Promise<{ error: HoldfastError; afterMs: number }> {
  const began = performance.now()
  const error = await call().then(
    () => expect.unreachable('it was expected to fail'),
    (reason: unknown) => reason as HoldfastError,
  )
  return { error, afterMs: performance.now() - began }
}

/** A pool whose sessions have settings of their own. */
function poolWith(settings: string, max = 3): { pool: pg.Pool; hf: Holdfast<pg.PoolClient> } {
  const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max, options: settings })
  pool.on('error', () => undefined)
  onTestFinished(async () => await pool.end())
  return { pool, hf: createHoldfast(fromPg(pool)) }
}

/** The driver of a client that gives a transaction up by a timer of its own. */
function withTimer(budgetMs: number): Driver<pg.PoolClient> {
  const driver = fromPg(fixture.pool)
  return { ...driver, join: (tx) => ({ ...driver.join(tx), budgetMs }) }
}

/** Accepts connections and never says a word. */
async function blackHole(): Promise<string> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`
}

describe('T6: the budget of the retries', () => {
  test.each([{ budget: '300 ms' as const }, { budgetMs: 300 }])(
    'counts from the call, also while connecting: %o',
    async (retry) => {
      const pool = new pg.Pool({ connectionString: await blackHole() })
      pool.on('error', () => undefined)
      onTestFinished(() => void pool.end())
      const hf = createHoldfast(fromPg(pool, { connectWithin: '900 ms' }))
      const { error, afterMs } = await failing(() => hf.transaction(async () => 1, { retry }))
      expect(error.code).toBe('CONNECTION_UNAVAILABLE')
      expect(afterMs).toBeGreaterThanOrEqual(290)
      inTime(afterMs, 300 + graceMs)
    },
  )
})

describe('a client that does not limit the wait for a connection', () => {
  function onPostgresJs(url: string): Holdfast<postgres.TransactionSql> {
    const sql = postgres(url, { max: 1, prepare: false, connect_timeout: 5 })
    onTestFinished(async () => await sql.end({ timeout: 0 }))
    return createHoldfast(fromPostgresJs(sql))
  }

  test('T6: is given up when the budget is over', async () => {
    const hf = onPostgresJs(await blackHole())
    const { error, afterMs } = await failing(() =>
      hf.transaction(async () => 1, { retry: { budget: '300 ms' } }),
    )
    expect(error.code).toBe('CONNECTION_UNAVAILABLE')
    inTime(afterMs, 300 + graceMs)
  })

  test('T12: of which transactions of ours have all connections is starved', async () => {
    const hf = onPostgresJs(fixture.database.directUrl)
    const [inside, done] = [deferred(), deferred()]
    const first = hf.transaction(async () => {
      inside.resolve()
      await done.promise
    })
    onTestFinished(() => done.resolve())
    await inside.promise
    let ran = false
    const enter = async (): Promise<void> => {
      ran = await Promise.resolve(true)
    }
    const { error, afterMs } = await failing(() =>
      hf.guard(lockKey('t12', 1), enter, { wait: '300 ms' }),
    )
    expect(error).toMatchObject({ code: 'POOL_STARVED', details: { held: { transactions: 1 } } })
    inTime(afterMs, 300 + graceMs)
    done.resolve()
    await first
    // It had a place in the queue of the client; nobody waits for it any more.
    expect(await hf.transaction(async () => 'next')).toBe('next')
    expect(ran).toBe(false)
  })

  test('T12: the limit of a pg pool is told as a starved pool, whoever uses it', async () => {
    const pool = new pg.Pool({
      connectionString: fixture.database.directUrl,
      max: 1,
      connectionTimeoutMillis: 300,
    })
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
    onTestFinished(async () => await db.destroy())
    const taken = await pool.connect()
    const hf = createHoldfast(fromKysely(db))
    const { error, afterMs } = await failing(() => hf.transaction(async () => 1))
    taken.release()
    expect(error.code).toBe('POOL_STARVED')
    inTime(afterMs, 300 + graceMs)
  })
})

describe('T7: waits inside a transaction', () => {
  async function tableHeld(): Promise<pg.PoolClient> {
    const holder = await callerTransaction(fixture)
    await holder.query('LOCK TABLE t IN ACCESS SHARE MODE')
    return holder
  }

  test("lockTable gives way to the caller's shorter lock_timeout", async () => {
    await tableHeld()
    const waiter = await callerTransaction(fixture)
    await waiter.query("SET LOCAL lock_timeout = '300ms'")
    const { error, afterMs } = await failing(() =>
      createRows(withTimer(2_000)).lockTable(waiter, 't', 'access exclusive'),
    )
    expect(error.code).toBe('ROWS_TIMEOUT')
    inTime(afterMs, 300 + graceMs)
  })

  test("lockTable counts the client's timer from the start of the transaction", async () => {
    await tableHeld()
    const waiter = await callerTransaction(fixture)
    await waiter.query('SELECT pg_sleep(0.5)')
    const { error, afterMs } = await failing(() =>
      createRows(withTimer(900)).lockTable(waiter, 't', 'access exclusive', { wait: 'inherit' }),
    )
    expect(error).toMatchObject({ code: 'ROWS_TIMEOUT', details: { endedBy: 'client' } })
    inTime(afterMs, 400 + graceMs)
  })

  test.each([{ wait: 'inherit' as const }, { waitMs: 'inherit' as const }])(
    "a name that inherits ends before the client's timer: %o",
    async (options) => {
      const key = lockKey('t7', 1)
      const holder = await callerTransaction(fixture)
      await fixture.hf.locks.acquire(holder, key)
      const waiter = await callerTransaction(fixture)
      const locks = createLocks(withTimer(300), { watch: false })
      const { error, afterMs } = await failing(() => locks.acquire(waiter, key, options))
      expect(error.code).toBe('LOCK_TIMEOUT')
      inTime(afterMs, 300 + graceMs)
    },
  )
})

describe('T10: a statement_timeout below the limit', () => {
  const short = '-c statement_timeout=300'

  test.each([1, 3])('ends the wait for %i name(s) as a timeout with its blocker', async (count) => {
    const keys = Array.from({ length: count }, (_, at) => lockKey('t10', count, at))
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, keys)
    const { hf } = poolWith(short)
    const { error, afterMs } = await failing(() => hf.guard(keys, async () => 1))
    expect(named(error)).toMatchObject({
      code: 'LOCK_TIMEOUT',
      details: { endedBy: 'statement_timeout' },
      blockers: [{ pid: await pidOf(holder) }],
    })
    inTime(afterMs, 300 + graceMs)
  })

  test.each([1, 3])('that only this transaction has, too: %i name(s)', async (count) => {
    const keys = Array.from({ length: count }, (_, at) => lockKey('t10-local', count, at))
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, keys)
    const waiter = await callerTransaction(fixture)
    await waiter.query("SET LOCAL statement_timeout = '300ms'")
    const { error } = await failing(() => fixture.hf.locks.acquire(waiter, keys, { wait: '5 s' }))
    expect(error).toMatchObject({
      code: 'LOCK_TIMEOUT',
      details: { endedBy: 'statement_timeout' },
    })
  })

  test('and no setting is blamed that the transaction does not have', async () => {
    const key = lockKey('t10', 'blamed')
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const { pool, hf } = poolWith('-c statement_timeout=300')
    const waiter = await pool.connect()
    onTestFinished(() => waiter.release(true))
    await waiter.query('BEGIN')
    await waiter.query("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '700ms'")
    const { error } = await failing(() => hf.locks.acquire(waiter, key))
    expect(error.code).toBe('LOCK_TIMEOUT')
    expect(error.details['endedBy']).not.toBe('statement_timeout')
  })

  test('also where no second connection is there to ask who it was', async () => {
    const key = lockKey('t10', 'alone')
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const { hf } = poolWith(short, 1)
    const { error } = await failing(() => hf.guard(key, async () => 1))
    expect(error).toMatchObject({
      code: 'LOCK_TIMEOUT',
      details: { endedBy: 'statement_timeout' },
    })
  })

  test('control: what somebody cancels is no timeout', async () => {
    const key = lockKey('t10', 'cancelled')
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    await holder.query('SELECT FROM t WHERE id = 1 FOR UPDATE')
    for (const wait of [
      (tx: pg.PoolClient) => fixture.hf.locks.acquire(tx, key),
      (tx: pg.PoolClient) => fixture.hf.rows.lock(tx, 't', [1]),
      (tx: pg.PoolClient) => fixture.hf.rows.lockTable(tx, 't', 'exclusive'),
    ]) {
      const waiter = await callerTransaction(fixture)
      const pid = await pidOf(waiter)
      const waiting = failing(() => wait(waiter))
      await waitUntilBlocked(fixture.observer, pid)
      await fixture.observer.query('SELECT pg_cancel_backend($1)', [pid])
      expect((await waiting).error.code).toBe('57014')
    }
  })
})

describe('R9: once', () => {
  test('waits no longer than its limit, and names who is at it', async () => {
    const [inside, done, name] = [deferred(), deferred(), fresh()]
    onTestFinished(() => done.resolve())
    let pid = 0
    const first = fixture.hf.once(name, async (tx) => {
      pid = await pidOf(tx)
      inside.resolve()
      await done.promise
      return 'first'
    })
    await inside.promise
    const again = async (): Promise<string> => await Promise.resolve('again')
    const { error, afterMs } = await failing(() => fixture.hf.once(name, again, { wait: '300 ms' }))
    expect(named(error)).toMatchObject({
      code: 'ONCE_TIMEOUT',
      name: 'ContentionError',
      details: { endedBy: 'wait' },
      blockers: [{ pid }],
    })
    inTime(afterMs, 300 + graceMs)
    const joined = await callerTransaction(fixture)
    const inTx = await failing(() => fixture.hf.once(joined, name, again, { wait: 200 }))
    expect(named(inTx.error)).toMatchObject({ code: 'ONCE_TIMEOUT', blockers: [{ pid }] })
    inTime(inTx.afterMs, 200 + graceMs)
    // The old names.
    expect(await fixture.hf.once(name, again, { wait: false })).toEqual({
      ok: false,
      reason: 'in-progress',
    })
    const waited = fixture.hf.once(name, again, { wait: true })
    done.resolve()
    await first
    expect(await waited).toMatchObject({ result: 'first', replayed: true })
  })
})

describe('R9: fire', () => {
  test('stops asking when its limit is over, and tells the tick as busy', async () => {
    const [inside, done] = [deferred(), deferred()]
    onTestFinished(() => done.resolve())
    let runs = 0
    const options = {
      name: fresh(),
      ...weekly,
      overlap: 'wait',
      guarantee: 'at-least-once',
      wait: '300 ms',
      async handler() {
        runs += 1
        if (runs > 1) return
        inside.resolve()
        await done.promise
      },
    } as const
    const schedule = fixture.hf.schedule(options)
    const first = schedule.runNow()
    await inside.promise
    await sleepThrough(fixture.observer, options.name, 1)
    const began = performance.now()
    expect(await schedule.fire()).toEqual([expect.objectContaining({ outcome: 'busy' })])
    inTime(performance.now() - began, 300 + 2 * graceMs)
    done.resolve()
    await first
  })

  test('pause waits no longer than that for a tick in a transaction', async () => {
    const [inside, done] = [deferred(), deferred()]
    onTestFinished(() => done.resolve())
    const schedule = fixture.hf.schedule({
      name: fresh(),
      guarantee: 'transactional',
      wait: '300 ms',
      async handler() {
        inside.resolve()
        await done.promise
      },
    })
    const first = schedule.runNow()
    await inside.promise
    const { error, afterMs } = await failing(() => schedule.pause())
    expect(error.code).toBe('SCHEDULE_TIMEOUT')
    inTime(afterMs, 300 + graceMs)
    done.resolve()
    await first
    expect(await schedule.pause()).toBe(true)
  })
})

describe('T13', () => {
  test('a look for blockers that is late is not sent any more', async () => {
    const key = lockKey('t13', 'look')
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const { pool, hf } = poolWith('', 2)
    const [other, waiter] = [await pool.connect(), await pool.connect()]
    await waiter.query('BEGIN')
    const { error } = await failing(() => hf.locks.acquire(waiter, key, { wait: 50 }))
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', blockers: [] })
    const sent: string[] = []
    const query = other.query.bind(other) as (...args: unknown[]) => unknown
    Object.assign(other, {
      query: (...args: unknown[]) => {
        sent.push(typeof args[0] === 'string' ? args[0] : 'object')
        return query(...args)
      },
    })
    await waiter.query('ROLLBACK')
    other.release()
    await waitUntil(
      'nobody waits for a connection',
      async () =>
        await Promise.resolve(pool.waitingCount === 0 && pool.idleCount === 1 ? true : undefined),
    )
    expect(sent).toEqual([])
    waiter.release()
  })

  test('retry.on adds to the defaults, retry.onlyOn stands in their place', async () => {
    const attempts = async (code: string, retry: object): Promise<number> => {
      let runs = 0
      await fixture.hf
        .transaction(
          async (tx) => {
            runs += 1
            if (runs < 3) await tx.query(`DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`)
          },
          { retry: { baseMs: 1, ...retry } },
        )
        .catch(() => undefined)
      return runs
    }
    expect(await attempts('40001', { on: ['23505'] })).toBe(3)
    expect(await attempts('23505', { on: ['23505'] })).toBe(3)
    expect(await attempts('40001', { onlyOn: ['23505'] })).toBe(1)
    expect(await attempts('23505', { onlyOn: ['23505'] })).toBe(3)
  })

  test('transactions have defaults', async () => {
    const seen: number[] = []
    // Long enough for a connection on a busy machine, which counts as well.
    const hf = fixture.create({ tx: { retry: false, deadline: '5 s' }, wait: 400 })
    const conflict = async (tx: pg.PoolClient, remaining: number | undefined): Promise<void> => {
      seen.push(Math.ceil((remaining ?? 0) / 5_000))
      await tx.query("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
    }
    for (const run of [hf.transaction, hf.rows.optimistic] as const) {
      await failing(() => run((tx, attempt) => conflict(tx, attempt.remainingMs())))
    }
    const key = lockKey('t13', 'defaults')
    await failing(() => hf.guard(key, (tx, attempt) => conflict(tx, attempt.remainingMs())))
    expect(seen).toEqual([1, 1, 1])
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const { error, afterMs } = await failing(() => hf.guard(key, async () => 1))
    expect(error.code).toBe('LOCK_TIMEOUT')
    inTime(afterMs, 400 + graceMs)
  })

  test('guard opens at READ COMMITTED whatever the server has as default', async () => {
    const { hf } = poolWith('-c default_transaction_isolation=repeatable\\ read')
    const level = async (tx: pg.PoolClient): Promise<string> =>
      (await tx.query('SHOW transaction_isolation')).rows[0].transaction_isolation
    const key = lockKey('t13', 'level')
    for (let round = 0; round < 2; round += 1) {
      expect(await hf.guard(key, level)).toBe('read committed')
    }
    expect(await hf.guard(key, level, { allowStaleSnapshot: true })).toBe('read committed')
    const { error } = await failing(() => hf.guard(key, level, { isolation: 'repeatable read' }))
    expect(error.code).toBe('LOCK_STALE_SNAPSHOT')
  })

  test('tryGuard runs the body if the lock is free, and else says who has it', async () => {
    const key = lockKey('t13', 'try')
    expect(await fixture.hf.tryGuard(key, async () => 'made')).toEqual({ ok: true, result: 'made' })
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const busy = await fixture.hf.tryGuard(key, async () => expect.unreachable())
    expect(busy).toMatchObject({ ok: false })
    expect(named(busy).blockers).toMatchObject([{ pid: await pidOf(holder) }])
    // A busy lock that the body meets is the body's.
    const other = lockKey('t13', 'other')
    const inside = fixture.hf.tryGuard(other, (tx) =>
      fixture.hf.locks.acquire(tx, key, { wait: 'nowait' }),
    )
    await expect(inside).rejects.toMatchObject({ code: 'LOCK_BUSY' })
  })
})

test.each([{ wait: 'nowait' as const }, { wait: 50, keepTransaction: true }])(
  'the look for blockers in a body is waited for, however slow the server is: %o',
  async (options) => {
    const key = lockKey('slow-look', JSON.stringify(options))
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const { pool, hf } = poolWith('')
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown
      client.query = ((...args: unknown[]) => {
        if (String(args[0]).includes('pg_stat_activity')) void query('SELECT pg_sleep(0.2)')
        return query(...args)
      }) as typeof client.query
    })
    const told = await hf.transaction(async (tx) => {
      const { error } = await failing(() => hf.locks.acquire(tx, key, options))
      await tx.query('INSERT INTO t VALUES (99) ON CONFLICT DO NOTHING')
      return error
    })
    expect(told.blockers.map(({ pid }) => pid)).toEqual([await pidOf(holder)])
  },
)
