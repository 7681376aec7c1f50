/** Locks on whole tables. */
import { waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { HoldfastError } from '../../../src/errors.ts'
import { createRows, type TableLockMode } from '../../../src/entries/rows.ts'
import { driverWith, errorOf, openRoom, type Room } from './open-room.ts'
import { waitedFor } from './row-waits.ts'
import { inTime, named } from '../../support/in-time.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE bookings (id int PRIMARY KEY)`)
})
beforeEach(async () => {
  await room.sql('TRUNCATE bookings')
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

/** The conflict table of PostgreSQL's manual, section 13.3.1. */
const conflicts: Record<TableLockMode, string> = {
  'access share': '.......x',
  'row share': '......xx',
  'row exclusive': '....xxxx',
  'share update exclusive': '...xxxxx',
  share: '..xx.xxx',
  'share row exclusive': '..xxxxxx',
  exclusive: '.xxxxxxx',
  'access exclusive': 'xxxxxxxx',
}
const modes = Object.keys(conflicts) as TableLockMode[]

test.each(modes)('%s keeps out what PostgreSQL says it does, and is named', async (held) => {
  const holder = await room.begin()
  await room.rows.lockTable(holder.client, 'bookings', held)
  const seen: string[] = []
  for (const asked of modes) {
    const other = await room.begin()
    const outcome = await room.rows
      .lockTable(other.client, 'bookings', asked, { wait: 'nowait' })
      .then(
        () => '.',
        (error: HoldfastError) => {
          expect(named(error)).toMatchObject({ code: 'ROWS_BUSY', blockers: [{ pid: holder.pid }] })
          return 'x'
        },
      )
    seen.push(outcome)
    await other.rollback()
  }
  expect(seen.join('')).toBe(conflicts[held])
})

describe('a limit', () => {
  test('ends the wait just after it, and keeps the transaction if asked to', async () => {
    const holder = await room.begin()
    await holder.sql('INSERT INTO bookings VALUES (1)')
    const session = await room.begin()
    await session.sql(`SET LOCAL lock_timeout = '7s'`)
    await session.sql(`SET LOCAL statement_timeout = '1min'`)
    const settings = `SELECT current_setting('lock_timeout') || current_setting('statement_timeout') AS both`
    const began = performance.now()
    const options = { wait: 300, keepTransaction: true }
    const error = await errorOf(room.rows.lockTable(session.client, 'bookings', 'share', options))
    const afterMs = performance.now() - began
    expect(named(error)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      blockers: [{ pid: holder.pid }],
    })
    expect(afterMs).toBeGreaterThanOrEqual(300)
    inTime(afterMs, 450)
    expect(await session.sql(settings)).toEqual([{ both: '7s1min' }])
    await holder.rollback()
    await room.rows.lockTable(session.client, 'bookings', 'share', options)
    expect(await session.sql(settings)).toEqual([{ both: '7s1min' }])
  })

  test('counts for all partitions together', async () => {
    await room.sql(`CREATE TABLE IF NOT EXISTS parted (id int) PARTITION BY RANGE (id)`)
    await room.sql(
      `CREATE TABLE IF NOT EXISTS parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10)`,
    )
    await room.sql(
      `CREATE TABLE IF NOT EXISTS parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20)`,
    )
    const first = await room.begin()
    await first.sql('LOCK TABLE parted_1 IN SHARE MODE')
    const second = await room.begin()
    await second.sql('LOCK TABLE parted_2 IN SHARE MODE')
    const waiter = await room.begin()
    const began = performance.now()
    const failing = errorOf(
      room.rows.lockTable(waiter.client, 'parted', 'exclusive', { wait: 1_000 }),
    )
    await waitedFor(room, waiter.pid, 600)
    await first.rollback()
    expect(named(await failing)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      blockers: [{ pid: second.pid }],
      cause: { code: '57014' },
    })
    inTime(performance.now() - began, 1_150)
  })

  test('T10: gives way to a shorter statement_timeout of the caller, and says so', async () => {
    const holder = await room.begin()
    await holder.sql('INSERT INTO bookings VALUES (1)')
    const session = await room.begin()
    await session.sql('SET LOCAL statement_timeout = 50')
    const locking = room.rows.lockTable(session.client, 'bookings', 'share', { wait: 20_000 })
    expect(named(await errorOf(locking))).toMatchObject({
      code: 'ROWS_TIMEOUT',
      details: { endedBy: 'statement_timeout' },
      blockers: [{ pid: holder.pid }],
    })
  })

  test("ends before the client's own transaction timer", async () => {
    const holder = await room.begin()
    await holder.sql('INSERT INTO bookings VALUES (1)')
    const rows = createRows(driverWith(room.driver, { budgetMs: 200 }))
    const { client } = await room.begin()
    const locking = rows.lockTable(client, 'bookings', 'share')
    await expect(locking).rejects.toMatchObject({ code: 'ROWS_TIMEOUT' })
  })
})

describe('at REPEATABLE READ', () => {
  /** What a transaction reads that waited for the table while another inserted into it. */
  async function readAfterWaiting(
    first: string | undefined,
    wait: 'block' | number,
  ): Promise<number> {
    const writer = await room.begin()
    await writer.sql('INSERT INTO bookings VALUES (1)')
    const client = await room.pool.connect()
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      if (first !== undefined) await client.query(first)
      const locking = room.rows.lockTable(client, 'bookings', 'share row exclusive', { wait })
      // Asking for its pid would take the snapshot, so the waiting session is found by its statement.
      const pid = await waitUntil('LOCK TABLE has arrived', async () => {
        const [found] = await room.sql<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LOCK TABLE%'
           AND wait_event_type = 'Lock'`,
        )
        return found?.pid
      })
      await waitUntilBlocked(room.observer, pid)
      await writer.commit()
      await locking
      const { rows } = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM bookings')
      return rows[0]?.n as number
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  }

  test.each(['block', 20_000] as const)(
    'a lock taken first comes before the snapshot: %s',
    async (wait) => {
      expect(await readAfterWaiting(undefined, wait)).toBe(1)
    },
  )

  test('control: after any SELECT it comes too late', async () => {
    expect(await readAfterWaiting(`SELECT set_config('lock_timeout', '9s', true)`, 'block')).toBe(0)
  })
})

test('names are quoted, and a mode is a mode', async () => {
  await room.sql('CREATE SCHEMA "S"')
  await room.sql('CREATE TABLE "S"."we""ird" ()')
  const { client, sql, pid } = await room.begin()
  await room.rows.lockTable(client, { schema: 'S', table: 'we"ird' }, 'exclusive')
  const held = `SELECT mode FROM pg_locks WHERE pid = $1 AND relation = '"S"."we""ird"'::regclass`
  expect(await sql(held, [pid])).toEqual([{ mode: 'ExclusiveLock' }])
  for (const mode of ['share mode; --', 'toString', 'SHARE']) {
    await expect(
      room.rows.lockTable(client, 'bookings', mode as TableLockMode),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID', details: { option: 'mode' } })
  }
  await expect(
    room.rows.lockTable(client, 'bookings', 'share', { wait: 'skip' as 'block' }),
  ).rejects.toMatchObject({ code: 'OPTION_INVALID', details: { option: 'wait' } })
})
