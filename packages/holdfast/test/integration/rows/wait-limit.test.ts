/** A limit in milliseconds: for all rows together, restored afterwards, and never mistaken. */
import { waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorOf, openRoom, type Room } from './open-room.ts'
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

describe('a limit in milliseconds', () => {
  const limitMs = 300
  /** Where a wait has two parts: long enough for us to end the first part well before the limit. */
  const twoPartLimitMs = 1_000

  test('ends the wait just after it and names the holder', async () => {
    const holder = await holding(room, 2)
    const { client } = await room.begin()
    const { error, afterMs } = await timed(() =>
      room.rows.lock(client, 'accounts', [1, 2], { wait: limitMs }),
    )
    expect(named(error)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      name: 'ContentionError',
      blockers: [{ pid: holder.pid }],
      cause: { code: '55P03' },
    })
    expect(afterMs).toBeGreaterThanOrEqual(limitMs)
    inTime(afterMs, limitMs + graceMs)
  })

  test('is one limit for all rows, though PostgreSQL counts each for itself', async () => {
    const [first, second] = [await holding(room, 1), await holding(room, 2)]
    const waiter = await room.begin()
    const waiting = timed(() =>
      room.rows.lock(waiter.client, 'accounts', [1, 2], { wait: twoPartLimitMs }),
    )
    await waitedFor(room, waiter.pid, twoPartLimitMs * 0.6)
    await first.rollback()
    const { error, afterMs } = await waiting
    expect(named(error)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      blockers: [{ pid: second.pid }],
      cause: { code: '57014' },
    })
    inTime(afterMs, twoPartLimitMs + graceMs)
  })

  test('and for the queue before one row, which is two waits', async () => {
    const holder = await holding(room, 1)
    const queue = await room.begin()
    const next = queue.sql('SELECT FROM accounts WHERE id = 1 FOR UPDATE')
    await waitUntilBlocked(room.observer, queue.pid)
    const waiter = await room.begin()
    const waiting = timed(() =>
      room.rows.lock(waiter.client, 'accounts', [1], { wait: twoPartLimitMs }),
    )
    await waitedFor(room, waiter.pid, twoPartLimitMs * 0.6)
    await holder.rollback()
    await next
    const { error, afterMs } = await waiting
    expect(named(error)).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [{ pid: queue.pid }] })
    inTime(afterMs, twoPartLimitMs + graceMs)
  })

  test('control: lock_timeout alone lets both of these wait longer', async () => {
    const first = await holding(room, 1)
    await holding(room, 2)
    const waiter = await room.begin()
    await waiter.sql(`SET LOCAL lock_timeout = ${twoPartLimitMs}`)
    const waiting = timed(() =>
      waiter.sql('SELECT FROM accounts WHERE id IN (1, 2) ORDER BY id FOR UPDATE'),
    )
    await waitedFor(room, waiter.pid, twoPartLimitMs * 0.6)
    await first.rollback()
    const { error, afterMs } = await waiting
    expect(error.code).toBe('55P03')
    expect(afterMs).toBeGreaterThan(twoPartLimitMs + graceMs)
  })

  test('is not used up by the statement itself', async () => {
    const { client } = await room.begin()
    const keys = Array.from({ length: 50 }, (_, at) => at + 1)
    expect((await room.rows.lock(client, 'accounts', keys, { wait: 1 })).rows).toHaveLength(50)
  })

  test.each([
    ['0', '0'],
    ['7s', '1min'],
    ['1234ms', '2d'],
    ['90min', '3h'],
  ])('leaves lock_timeout %s and statement_timeout %s as they were', async (lock, statement) => {
    const session = await room.begin()
    await session.sql(`SET LOCAL lock_timeout = '${lock}'`)
    await session.sql(`SET LOCAL statement_timeout = '${statement}'`)
    const before = await timeouts(session)
    expect(before).toEqual({ lock, statement })
    await room.rows.lock(session.client, 'accounts', [1, 999], { wait: 500 })
    expect(await timeouts(session)).toEqual(before)
    await holding(room, 2)
    const options = { wait: 20, keepTransaction: true }
    const locking = room.rows.lock(session.client, 'accounts', [2], options)
    await expect(locking).rejects.toMatchObject({ code: 'ROWS_TIMEOUT' })
    expect(await timeouts(session)).toEqual(before)
  })

  test('leaves nothing behind on the server connection', async () => {
    const session = await room.begin()
    await room.rows.lock(session.client, 'accounts', [1], { wait: 500 })
    const { pid } = session
    await session.commit()
    // Behind a pooler the next transaction may be on any connection; look until it is this one.
    await waitUntil('the same connection serves another transaction', async () => {
      const next = await room.begin()
      const here = next.pid === pid
      if (here) {
        expect(await timeouts(next)).toEqual({ lock: '0', statement: '0' })
        const [marker] = await next.sql(`SELECT current_setting('holdfast.held', true) AS held`)
        expect(marker).toEqual({ held: '' })
      }
      await next.rollback()
      return here ? true : undefined
    })
  })

  test('T10: gives way to a shorter statement_timeout of the caller, and says so', async () => {
    const holder = await holding(room, 2)
    const session = await room.begin()
    await session.sql('SET LOCAL statement_timeout = 100')
    const { error, afterMs } = await timed(() =>
      room.rows.lock(session.client, 'accounts', [2], { wait: 20_000 }),
    )
    expect(named(error)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      details: { endedBy: 'statement_timeout' },
      blockers: [{ pid: holder.pid }],
    })
    inTime(afterMs, 100 + graceMs)
  })

  test('rules over a shorter lock_timeout of the caller', async () => {
    const holder = await holding(room, 2)
    const session = await room.begin()
    await session.sql('SET LOCAL lock_timeout = 1')
    const locking = room.rows.lock(session.client, 'accounts', [2], { wait: 20_000 })
    await waitedFor(room, session.pid, 50)
    await holder.rollback()
    expect((await locking).rows).toHaveLength(1)
  })

  test('does not claim a cancellation that was not its own', async () => {
    await holding(room, 2)
    const session = await room.begin()
    const failing = errorOf(room.rows.lock(session.client, 'accounts', [2], { wait: 20_000 }))
    await waitUntilBlocked(room.observer, session.pid)
    await room.sql('SELECT pg_cancel_backend($1)', [session.pid])
    expect((await failing).code).toBe('57014')
  })

  test.each([-1, 1.5, NaN, 2 ** 31, 'forever'])('of %s is refused', async (wait) => {
    const { client } = await room.begin()
    const locking = room.rows.lock(client, 'accounts', [1], { wait: wait as number })
    await expect(locking).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      details: { option: 'wait' },
    })
  })
})
