/** What happens to a call that finds a row locked, and what is left after it. */
import { waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createRows } from '../../../src/entries/rows.ts'
import { driverWith, errorOf, openRoom, type Room } from './open-room.ts'
import { graceMs, holding, timed, timeouts, waitedFor } from './row-waits.ts'
import { inTime, named } from '../../support/in-time.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)`)
  await room.sql(`INSERT INTO accounts SELECT i, 100 FROM generate_series(1, 50) AS i`)
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

describe('nowait', () => {
  test('fails at once and names the holder', async () => {
    const holder = await holding(room, 2)
    const { client } = await room.begin()
    const { error, afterMs } = await timed(() =>
      room.rows.lock(client, 'accounts', [1, 2, 3], { wait: 'nowait' }),
    )
    expect(named(error)).toMatchObject({
      code: 'ROWS_BUSY',
      name: 'ContentionError',
      retryable: true,
      details: { subject: 'accounts' },
      blockers: [{ pid: holder.pid, state: 'idle in transaction' }],
      cause: { code: '55P03' },
    })
    expect(error.message).toContain(`Blocked by pid ${holder.pid}`)
    inTime(afterMs, graceMs)
  })

  test('is what a limit of zero means', async () => {
    await holding(room, 2)
    const { client } = await room.begin()
    const locking = room.rows.lock(client, 'accounts', [2], { wait: 0 })
    await expect(locking).rejects.toMatchObject({ code: 'ROWS_BUSY' })
  })

  test('names all who share the row', async () => {
    const sharers = [await room.begin(), await room.begin(), await room.begin()]
    for (const { client } of sharers) {
      await room.rows.lock(client, 'accounts', [4], { strength: 'share' })
    }
    const { client } = await room.begin()
    const error = await errorOf(room.rows.lock(client, 'accounts', [4], { wait: 'nowait' }))
    const { blockers } = named(error)
    expect(blockers).toHaveLength(3)
    expect(new Set(blockers.map(({ pid }) => pid))).toEqual(new Set(sharers.map(({ pid }) => pid)))
  })

  test('names a holder who changed the row, or locked it inside a savepoint', async () => {
    const holder = await room.begin()
    await holder.sql('SAVEPOINT inside')
    await holder.sql('UPDATE accounts SET balance = 1 WHERE id = 5')
    const { client } = await room.begin()
    const locking = room.rows.lock(client, 'accounts', [5], { wait: 'nowait' })
    const { blockers } = named(await errorOf(locking))
    expect(blockers).toMatchObject([{ pid: holder.pid }])
  })
})

describe('skip', () => {
  test('leaves out what others hold, and tells it from what is not there', async () => {
    await holding(room, 2, 4)
    const { client } = await room.begin()
    const locked = await room.rows.lock(client, 'accounts', [4, 999, 3, 2, 1], { wait: 'skip' })
    expect(locked.rows.map((row) => row['id'])).toEqual([3, 1])
    expect(locked.skipped).toEqual([4, 2])
    expect(locked.missing).toEqual([999])
  })

  test('does not please expectAll', async () => {
    await holding(room, 2)
    const { client } = await room.begin()
    const options = { wait: 'skip', expectAll: true } as const
    await expect(room.rows.lock(client, 'accounts', [1, 2, 999], options)).rejects.toMatchObject({
      code: 'ROWS_MISSING',
      details: { missing: 1, skipped: 1 },
    })
  })
})

describe('blocking', () => {
  test("ends by the caller's own lock_timeout", async () => {
    const holder = await holding(room, 2)
    const session = await room.begin()
    await session.sql('SET LOCAL lock_timeout = 50')
    const error = await errorOf(room.rows.lock(session.client, 'accounts', [2]))
    expect(named(error)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      blockers: [{ pid: holder.pid }],
    })
  })

  test('can be limited for the whole room', async () => {
    await holding(room, 2)
    const { client } = await room.begin()
    const rows = createRows(room.driver, { wait: 50 })
    await expect(rows.lock(client, 'accounts', [2])).rejects.toMatchObject({ code: 'ROWS_TIMEOUT' })
  })

  test("ends before the client's own transaction timer", async () => {
    await holding(room, 2)
    const budgetMs = 400
    const rows = createRows(driverWith(room.driver, { budgetMs }))
    for (const wait of ['block', 20_000] as const) {
      const session = await room.begin()
      const { error, afterMs } = await timed(() =>
        rows.lock(session.client, 'accounts', [1, 2], { wait, keepTransaction: true }),
      )
      expect(error.code).toBe('ROWS_TIMEOUT')
      inTime(afterMs, budgetMs + graceMs)
      expect(await timeouts(session)).toEqual({ lock: '0', statement: '0' })
      await session.rollback()
    }
  })

  test("but sooner by the caller's own lock_timeout", async () => {
    await holding(room, 2)
    const rows = createRows(driverWith(room.driver, { budgetMs: 20_000 }))
    const session = await room.begin()
    await session.sql('SET LOCAL lock_timeout = 50')
    const { error, afterMs } = await timed(() => rows.lock(session.client, 'accounts', [2]))
    expect(error.code).toBe('ROWS_TIMEOUT')
    inTime(afterMs, 10_000)
  })
})

describe('keepTransaction', () => {
  test.each(['nowait', 50] as const)('with %s: the transaction goes on', async (wait) => {
    const holder = await holding(room, 2)
    const session = await room.begin()
    await room.rows.lock(session.client, 'accounts', [1])
    const options = { wait, keepTransaction: true }
    const error = await errorOf(room.rows.lock(session.client, 'accounts', [1, 2], options))
    // What the transaction itself holds is not in its own way.
    expect(named(error).blockers.map(({ pid }) => pid)).toEqual([holder.pid])
    await holder.rollback()
    const { rows } = await room.rows.lock(session.client, 'accounts', [1, 2], options)
    expect(rows).toHaveLength(2)
    const other = await room.begin()
    const skip = await room.rows.lock(other.client, 'accounts', [1, 2], { wait: 'skip' })
    expect(skip.skipped).toEqual([1, 2])
    await session.commit()
  })

  test('control: without it the transaction is lost', async () => {
    await holding(room, 2)
    const session = await room.begin()
    await errorOf(room.rows.lock(session.client, 'accounts', [2], { wait: 'nowait' }))
    expect((await errorOf(session.sql('SELECT 1'))).code).toBe('25P02')
  })
})

describe('the look for the blocker', () => {
  const waiting = (): Promise<unknown[]> =>
    room.sql(
      `SELECT FROM pg_locks JOIN pg_stat_activity AS a USING (pid)
       WHERE NOT granted AND a.datname = current_database()`,
    )

  test('finds a lock on the whole table, and does not queue behind it', async () => {
    const holder = await room.begin()
    await holder.sql('LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE')
    const { client } = await room.begin()
    const { error, afterMs } = await timed(() =>
      room.rows.lock(client, 'accounts', [1], { wait: 100 }),
    )
    expect(named(error)).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [{ pid: holder.pid }] })
    inTime(afterMs, 100 + graceMs)
    expect(await waiting()).toEqual([])
  })

  test('where it has to wait, is ended by the server and leaves no connection stuck', async () => {
    for (const keepTransaction of [false, true]) {
      const holder = await holding(room, 1)
      const waiter = await room.begin()
      const failing = timed(() =>
        room.rows.lock(waiter.client, 'accounts', [1], { wait: 500, keepTransaction }),
      )
      await waitedFor(room, waiter.pid, 100)
      // It came after the wait had begun, and now stands before everybody who wants to read.
      const altering = await room.begin()
      const altered = altering
        .sql('ALTER TABLE accounts ADD COLUMN note text')
        .catch(() => 'cancelled')
      await waitUntilBlocked(room.observer, altering.pid)
      const { error, afterMs } = await failing
      expect(error).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [] })
      inTime(afterMs, 500 + 2 * graceMs)
      await room.sql('SELECT pg_cancel_backend($1)', [altering.pid])
      expect(await altered).toBe('cancelled')
      await waitUntil('nobody waits any more', async () =>
        (await waiting()).length === 0 ? true : undefined,
      )
      await holder.rollback()
    }
  })

  test('gives up when no connection is free to look with', async () => {
    await holding(room, 2)
    const clients = await Promise.all(Array.from({ length: 14 }, () => room.pool.connect()))
    const [client] = clients
    try {
      await client?.query('BEGIN')
      const { error, afterMs } = await timed(() =>
        room.rows.lock(client as never, 'accounts', [2], { wait: 100 }),
      )
      expect(error).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [] })
      // Here the look takes all of its 100 ms; the rest is what a busy machine adds.
      inTime(afterMs, 100 + 2 * graceMs)
    } finally {
      await client?.query('ROLLBACK')
      for (const each of clients) each.release()
    }
  })
})
