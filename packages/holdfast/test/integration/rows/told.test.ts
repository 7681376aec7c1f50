/** What is told of rows: to listeners when it has happened, and in errors when it has not. */
import { waitUntilBlocked } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Wait } from '../../../src/core/options/wait.ts'
import type { EventMap, EventName } from '../../../src/core/events/event-map.ts'
import { channelPrefix } from '../../../src/core/events.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { createRows } from '../../../src/entries/rows.ts'
import { eventsOn } from '../../support/pg-fixture.ts'
import { inTime, named } from '../../support/in-time.ts'
import { errorOf, openRoom, type Room } from './open-room.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql('CREATE TABLE told (id int PRIMARY KEY, part int, version int)')
  await room.sql('CREATE TABLE child (id int PRIMARY KEY, told int REFERENCES told, version int)')
})
beforeEach(async () => {
  await room.sql('TRUNCATE told, child')
  await room.sql('INSERT INTO told VALUES (1, 1, 1), (2, 1, 1), (3, 2, NULL)')
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

const on = <N extends EventName>(name: N): EventMap[N][] =>
  eventsOn<EventMap[N]>(channelPrefix + name)

/** Runs it where row 1 is held by somebody; by whom, and the error. */
async function whileHeld(
  run: (client: PoolClient) => Promise<unknown>,
): Promise<{ readonly holder: number; readonly error: HoldfastError; readonly tookMs: number }> {
  const holder = await room.begin()
  await room.rows.lock(holder.client, 'told', [1])
  const { client } = await room.begin()
  const began = performance.now()
  const error = (await errorOf(run(client))) as HoldfastError
  return { holder: holder.pid, error, tookMs: performance.now() - began }
}

describe('listeners', () => {
  test('hear how many rows are locked, missing and skipped', async () => {
    const events = on('rows.locked')
    const holder = await room.begin()
    await room.rows.lock(holder.client, 'told', [1], { strength: 'share' })
    const { client } = await room.begin()
    const began = performance.now()
    await room.rows.lock(client, 'told', [1, 2, 3, 98, 99, 100], { wait: 'skip' })
    const tookMs = performance.now() - began
    expect(events).toMatchObject([
      { table: 'told', strength: 'share', locked: 1, missing: 0, skipped: 0 },
      { table: 'told', strength: 'no key update', locked: 2, missing: 3, skipped: 1 },
    ])
    expect(events[1]?.waitMs).toBeLessThanOrEqual(tookMs)
    expect(events[1]?.waitMs).toBeGreaterThan(0)
  })

  test('hear of a table', async () => {
    const events = on('rows.table-locked')
    const { client } = await room.begin()
    const began = performance.now()
    await room.rows.lockTable(client, 'told', 'share')
    expect(events).toMatchObject([{ table: 'told', mode: 'share' }])
    expect(events[0]?.waitMs).toBeLessThanOrEqual(performance.now() - began)
  })

  test('hear of who does not wait and of who waited in vain, each on its own channel', async () => {
    const [busy, timeout] = [on('rows.busy'), on('rows.timeout')]
    const first = await whileHeld((tx) => room.rows.lock(tx, 'told', [1], { wait: 'nowait' }))
    expect(first.error).toMatchObject({ code: 'ROWS_BUSY' })
    expect(first.error.details).not.toHaveProperty('endedBy')
    expect([busy.length, timeout.length]).toEqual([1, 0])
    expect(named(busy[0] as object)).toMatchObject({
      table: 'told',
      blockers: [{ pid: first.holder }],
    })
    await room.tidy()
    const second = await whileHeld((tx) => room.rows.lock(tx, 'told', [1], { wait: 60 }))
    expect(second.error).toMatchObject({ code: 'ROWS_TIMEOUT', details: { endedBy: 'wait' } })
    expect([busy.length, timeout.length]).toEqual([1, 1])
    const waitMs = timeout[0]?.waitMs as number
    expect(waitMs).toBeGreaterThanOrEqual(59)
    expect(waitMs).toBeLessThanOrEqual(second.tookMs)
  })

  test('hear how long each kind of call waited', async () => {
    const timeout = on('rows.timeout')
    const set = { part: 9 }
    const options = { wait: 60 }
    await whileHeld((tx) => room.rows.lockTable(tx, 'told', 'exclusive', options))
    await room.tidy()
    await whileHeld((tx) =>
      room.rows.updateVersioned(tx, 'told', 1, { version: 1, set, ...options }),
    )
    expect(timeout).toHaveLength(2)
    for (const { waitMs } of timeout) {
      expect(waitMs).toBeGreaterThanOrEqual(59)
      inTime(waitMs, 5_000)
    }
  })

  test('hear of a version that is past, and of a row that is gone', async () => {
    const events = on('rows.conflict')
    const { client } = await room.begin()
    for (const [key, version] of [
      [1, 7],
      [99, 1],
    ] as const)
      await errorOf(room.rows.updateVersioned(client, 'told', key, { version, set: { part: 9 } }))
    expect(events).toEqual([
      { table: 'told', reason: 'changed' },
      { table: 'told', reason: 'missing' },
    ])
  })
})

describe('errors', () => {
  /** Of a call with a handle that is in no transaction. */
  test('name the table outside of a transaction', async () => {
    const client = await room.pool.connect()
    const set = { part: 9 }
    for (const call of [
      () => room.rows.lock(client, 'told', [1]),
      () => room.rows.lockTable(client, 'told', 'share'),
      () => room.rows.updateVersioned(client, 'told', 1, { version: 1, set }),
    ])
      expect(await errorOf(call())).toMatchObject({
        code: 'ROWS_OUTSIDE_TRANSACTION',
        details: { subject: 'told' },
      })
    client.release()
  })

  test('say that the key columns mean several rows', async () => {
    const { client } = await room.begin()
    const keyColumns = ['part']
    const subject = 'told: the key columns do not identify one row'
    for (const call of [
      () => room.rows.lock(client, 'told', [1], { keyColumns }),
      () =>
        room.rows.updateVersioned(client, 'told', 1, { keyColumns, version: 1, set: { part: 9 } }),
    ])
      expect(await errorOf(call())).toMatchObject({
        code: 'ROWS_KEY_INVALID',
        details: { subject: expect.stringContaining(subject) },
      })
  })

  test('name the table of a key that the server cannot read', async () => {
    const { client } = await room.begin()
    expect(await errorOf(room.rows.lock(client, 'told', ['one']))).toMatchObject({
      code: 'ROWS_KEY_INVALID',
      details: { subject: 'told' },
    })
  })

  test('say which option is wrong, and why', async () => {
    const { client } = await room.begin()
    const never = async (): Promise<never> => expect.unreachable()
    const check = { work: never, write: never }
    const wrong: [() => Promise<unknown>, string, string][] = [
      [
        () =>
          room.rows.updateVersioned(client, 'told', 1, {
            keyColumns: ['version'],
            version: 1,
            set: {},
          }),
        'versionColumn',
        'versionColumn is a key column',
      ],
      [
        () => room.rows.updateVersioned(client, 'told', 1, { version: 1, set: { version: 2 } }),
        'set',
        'set names the version column, which is counted up',
      ],
      [
        () => room.rows.withVersionCheck('told', 1, { ...check, attempts: 0 }),
        'attempts',
        'attempts must be a whole number, 1 or more',
      ],
      [
        () => room.rows.withVersionCheck('told', 3, check),
        'versionColumn',
        'the version of the row is NULL',
      ],
    ]
    for (const [call, option, subject] of wrong)
      expect(await errorOf(call())).toMatchObject({
        code: 'OPTION_INVALID',
        details: { option, subject },
      })
  })

  test('of a check before its work name who has locked the whole table', async () => {
    const timeout = on('rows.timeout')
    for (const wait of ['nowait', 60] as const) {
      const holder = await room.begin()
      await room.rows.lockTable(holder.client, 'told', 'access exclusive')
      const never = async (): Promise<never> => expect.unreachable()
      const began = performance.now()
      const error = await errorOf(
        room.rows.withVersionCheck('told', 1, { wait, work: never, write: never }),
      )
      inTime(performance.now() - began, 5_000)
      expect(named(error)).toMatchObject({
        code: wait === 'nowait' ? 'ROWS_BUSY' : 'ROWS_TIMEOUT',
        blockers: [{ pid: holder.pid }],
      })
      await holder.rollback()
    }
    expect(timeout.map(({ table }) => table)).toEqual(['told'])
    inTime(timeout[0]?.waitMs as number, 5_000)
  })

  test('of a change that does not wait come at once', async () => {
    const rows = createRows(room.driver, { wait: 'nowait' })
    const { holder, error, tookMs } = await whileHeld((tx) =>
      rows.updateVersioned(tx, 'told', 1, { version: 1, set: { part: 9 } }),
    )
    expect(named(error)).toMatchObject({ code: 'ROWS_BUSY', blockers: [{ pid: holder }] })
    inTime(tookMs, 1_000)
  })

  test('of a change that does not wait come at once, also behind a foreign key', async () => {
    await room.sql('INSERT INTO child VALUES (1, 2, 1)')
    const holder = await room.begin()
    await holder.sql('SELECT FROM told WHERE id = 1 FOR UPDATE')
    const rows = createRows(room.driver, { wait: 'nowait' })
    const { client } = await room.begin()
    const began = performance.now()
    const changing = rows.updateVersioned(client, 'child', 1, { version: 1, set: { told: 1 } })
    expect(await errorOf(changing)).toMatchObject({ code: 'ROWS_BUSY' })
    inTime(performance.now() - began, 1_000)
  })

  test('of a change that does not wait leave a shorter statement_timeout alone', async () => {
    await room.sql('INSERT INTO child VALUES (1, 2, 1)')
    const holder = await room.begin()
    await holder.sql('SELECT FROM told WHERE id = 1 FOR UPDATE')
    const rows = createRows(room.driver, { wait: 'nowait' })
    const mine = await room.begin()
    await mine.sql(`SET LOCAL statement_timeout = '100ms'`)
    const changing = rows.updateVersioned(mine.client, 'child', 1, {
      version: 1,
      set: { told: 1 },
    })
    expect((await errorOf(changing)).code).toBe('57014')
  })

  test('of a row that another has taken the place of meanwhile are none', async () => {
    const [writer, mine] = [await room.begin(), await room.begin()]
    await writer.sql('DELETE FROM told WHERE id = 1')
    await writer.sql('INSERT INTO told VALUES (1, 5, 1)')
    const changing = room.rows.updateVersioned(mine.client, 'told', 1, {
      version: 1,
      set: { part: 9 },
    })
    await waitUntilBlocked(room.observer, mine.pid)
    await writer.commit()
    expect(await changing).toEqual({ id: 1, part: 9, version: 2 })
  })

  test('of a policy are not told as those of a key', async () => {
    const mine = await room.begin()
    await mine.sql(`CREATE ROLE told_tenant; GRANT SELECT, UPDATE ON told TO told_tenant`)
    await mine.sql('ALTER TABLE told ENABLE ROW LEVEL SECURITY')
    await mine.sql(`CREATE POLICY mine ON told
      USING (part = pg_catalog.current_setting('app.tenant', true)::int)`)
    await mine.sql(`SET LOCAL app.tenant = ''; SET LOCAL ROLE told_tenant`)
    const locking = room.rows.lock(mine.client, 'told', [1])
    expect((await errorOf(locking)).code).toBe('22P02')
    const other = await room.begin()
    const wrong = room.rows.lock(other.client, 'told', ['one'])
    expect(await errorOf(wrong)).toMatchObject({ code: 'ROWS_KEY_INVALID' })
  })

  test('of somebody who cancels are told as such, also shortly before the end', async () => {
    const [holder, mine] = [await room.begin(), await room.begin()]
    await holder.sql('SELECT FROM told WHERE id = 1 FOR UPDATE')
    const told = errorOf(room.rows.lock(mine.client, 'told', [1], { wait: 1_500 }))
    await waitUntilBlocked(room.observer, mine.pid)
    // The process hears of it only when the limit is over as well.
    await room.sql('SELECT pg_cancel_backend($1)', [mine.pid])
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_600)
    expect((await told).code).toBe('57014')
  })

  test('of a version that has become NULL meanwhile say so', async () => {
    const checked = room.rows.withVersionCheck('told', 1, {
      work: async () => await room.sql('UPDATE told SET version = NULL WHERE id = 1'),
      write: async () => expect.unreachable(),
    })
    expect(await errorOf(checked)).toMatchObject({
      code: 'ROWS_VERSION_CONFLICT',
      details: { reason: 'changed', foundVersion: 'NULL' },
    })
  })
})

describe('what is run again after a conflict', () => {
  /** How often a body runs that conflicts once, or meets something else. */
  async function runs(
    retry: { readonly onlyOn?: string[]; readonly on?: string[] } | false,
    fails: () => Promise<unknown>,
  ): Promise<number> {
    const rows = createRows(room.driver)
    let count = 0
    await rows
      .optimistic(
        async () => {
          count += 1
          if (count === 1) await fails()
        },
        { retry },
      )
      .catch(() => undefined)
    return count
  }
  const conflict = async (): Promise<unknown> => {
    const { client } = await room.begin()
    return await room.rows.updateVersioned(client, 'told', 1, { version: 7, set: { part: 9 } })
  }
  const busy = async (): Promise<unknown> => {
    throw Object.assign(new Error('unique'), { code: '23505' })
  }

  test.each([
    [{}, 2, 1],
    [{ on: ['23505'] }, 2, 2],
    [{ onlyOn: ['23505'] }, 2, 2],
    [{ onlyOn: [] }, 2, 1],
    [false, 1, 1],
  ] as const)('%o', async (retry, afterConflict, afterOther) => {
    const policy = retry as Parameters<typeof runs>[0]
    expect([await runs(policy, conflict), await runs(policy, busy)]).toEqual([
      afterConflict,
      afterOther,
    ])
  })
})

/** NOWAIT and SKIP LOCKED are about rows: PostgreSQL waits for the table all the same, without an end. */
describe('who does not wait for rows, and the whole table is locked', () => {
  const timeouts = `SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement`

  async function behindTable(wait: 'nowait' | 'skip', limit?: Wait) {
    const rows = createRows(room.driver, limit === undefined ? {} : { wait: limit })
    const holder = await room.begin()
    await room.rows.lockTable(holder.client, 'told', 'access exclusive')
    const { client, pid } = await room.begin()
    const began = performance.now()
    const locking = rows.lock(client, 'told', [1], { wait, keepTransaction: true })
    return { holder, client, pid, began, locking }
  }

  test('does not wait for it either', async () => {
    const { holder, client, began, locking } = await behindTable('nowait')
    expect(named(await errorOf(locking))).toMatchObject({
      code: 'ROWS_BUSY',
      blockers: [{ pid: holder.pid }],
    })
    inTime(performance.now() - began, 1_000)
    expect((await client.query(timeouts)).rows).toEqual([{ lock: '0', statement: '0' }])
  })

  test('and leaves rows out waits as long as other calls', async () => {
    const { holder, began, locking } = await behindTable('skip', 300)
    expect(named(await errorOf(locking))).toMatchObject({
      code: 'ROWS_TIMEOUT',
      details: { endedBy: 'wait' },
      blockers: [{ pid: holder.pid }],
    })
    expect(performance.now() - began).toBeGreaterThanOrEqual(295)
    inTime(performance.now() - began, 1_500)
  })

  test('and leaves rows out does not wait where the others do not', async () => {
    const { began, locking } = await behindTable('skip', 'nowait')
    expect(await errorOf(locking)).toMatchObject({ code: 'ROWS_BUSY' })
    inTime(performance.now() - began, 1_000)
  })

  test('is not told of a timeout if somebody has cancelled it', async () => {
    const { pid, locking } = await behindTable('skip', 20_000)
    const settled = errorOf(locking)
    await waitUntilBlocked(room.observer, pid)
    await room.sql('SELECT pg_cancel_backend($1)', [pid])
    expect(await settled).toMatchObject({ code: '57014' })
  })

  test('control: PostgreSQL itself waits', async () => {
    const holder = await room.begin()
    await room.rows.lockTable(holder.client, 'told', 'access exclusive')
    const { client, pid } = await room.begin()
    const locking = client.query('SELECT FROM told WHERE id = 1 FOR UPDATE NOWAIT')
    await waitUntilBlocked(room.observer, pid)
    await holder.rollback()
    expect((await locking).rowCount).toBe(1)
  })

  test.each(['nowait', 'skip'] as const)('%s: a statement may take its time', async (wait) => {
    await room.sql(`CREATE FUNCTION slow(int) RETURNS int LANGUAGE sql VOLATILE AS
      'SELECT $1 FROM pg_sleep(0.2)'`)
    await room.sql('CREATE VIEW slowly AS SELECT slow(id) AS id, part FROM told WHERE id = 1')
    const { client } = await room.begin()
    const rows = createRows(room.driver, { wait: 'nowait' })
    const locked = await rows.lock(client, 'slowly', [1], { wait })
    await room.tidy()
    await room.sql('DROP VIEW slowly')
    await room.sql('DROP FUNCTION slow')
    expect(locked.rows).toHaveLength(1)
  })
})
