/** Row locks are refused outside a transaction, and tell the locks room that they were taken. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { createRows } from '../../../src/entries/rows.ts'
import { driverWith, openRoom, type Room } from './open-room.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE accounts (id int PRIMARY KEY, version int NOT NULL)`)
  await room.sql(`INSERT INTO accounts SELECT i, 1 FROM generate_series(1, 5) AS i`)
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

describe('outside a transaction', () => {
  const outside = { code: 'ROWS_OUTSIDE_TRANSACTION', name: 'UsageError' }

  test('nothing is locked and nothing changed', async () => {
    const client = await room.pool.connect()
    try {
      const { rows } = room
      await expect(rows.lock(client, 'accounts', [1])).rejects.toMatchObject(outside)
      await expect(rows.lock(client, 'accounts', [])).rejects.toMatchObject(outside)
      await expect(rows.lockTable(client, 'accounts', 'share')).rejects.toMatchObject(outside)
      const update = { version: 1, set: {} }
      await expect(rows.updateVersioned(client, 'accounts', 1, update)).rejects.toMatchObject(
        outside,
      )
    } finally {
      client.release()
    }
    expect(await room.sql('SELECT FROM accounts WHERE version <> 1')).toEqual([])
  })

  /** As with a client that cannot say whether a transaction is open. */
  const unsure = (): ReturnType<typeof createRows<never>> =>
    createRows(driverWith(room.driver, { state: () => 'unknown' })) as never

  test.each([
    {},
    { wait: 'nowait' },
    { wait: 'skip' },
    { wait: 500 },
    { keepTransaction: true },
    { wait: 500, keepTransaction: true },
  ] as const)('the server is asked where the client does not know: %o', async (options) => {
    const client = await room.pool.connect()
    try {
      for (const keys of [[1], [999]]) {
        const locking = unsure().lock(client as never, 'accounts', keys, options)
        await expect(locking).rejects.toMatchObject(outside)
      }
    } finally {
      client.release()
    }
    const { client: open } = await room.begin()
    for (const keys of [[1], [999]]) {
      const { rows, missing } = await unsure().lock(open as never, 'accounts', keys, options)
      expect(rows.length + missing.length).toBe(1)
    }
  })

  test('with a limit it is refused before it waits, since the limit would not be in force', async () => {
    const holder = await room.begin()
    await room.rows.lock(holder.client, 'accounts', [1])
    const client = await room.pool.connect()
    try {
      const locking = unsure().lock(client as never, 'accounts', [1], { wait: 60_000 })
      await expect(locking).rejects.toMatchObject(outside)
    } finally {
      client.release()
    }
  })

  test.each([{}, { wait: 500 }, { keepTransaction: true }] as const)(
    'LOCK TABLE says so itself: %o',
    async (options) => {
      const client = await room.pool.connect()
      try {
        const locking = unsure().lockTable(client as never, 'accounts', 'share', options)
        await expect(locking).rejects.toMatchObject(outside)
      } finally {
        client.release()
      }
    },
  )
})

describe('an advisory lock after row locks', () => {
  let used = 0
  const after = async (
    first: (tx: never, rows: Room['rows']) => Promise<unknown>,
  ): Promise<unknown> => {
    const driver = { ...room.driver }
    const locks = createLocks(driver, { strict: true, watch: false })
    const rows = createRows(driver)
    // Somebody takes the lock first, then rows of the same table.
    const earlier = await room.begin()
    await locks.acquire(earlier.client, lockKey('rows-first', (used += 1)))
    await rows.lock(earlier.client, 'accounts', [2])
    await earlier.sql('COMMIT')
    const { client } = await room.begin()
    await first(client as never, rows)
    return locks.acquire(client, lockKey('rows-first', (used += 1))).then(
      () => 'granted',
      (error: unknown) => error,
    )
  }
  const rowsFirst = { code: 'LOCK_ORDER', details: { fault: 'rows-first' } }

  test.each([{}, { wait: 500 }, { wait: 'skip' }, { keepTransaction: true }] as const)(
    'is a fault: %o',
    async (options) => {
      expect(await after((tx, rows) => rows.lock(tx, 'accounts', [1], options))).toMatchObject(
        rowsFirst,
      )
    },
  )

  test('and so it is after a versioned change', async () => {
    const change = { version: 1, set: {} }
    expect(
      await after((tx, rows) => rows.updateVersioned(tx, 'accounts', 1, change)),
    ).toMatchObject(rowsFirst)
  })

  test('is none if no row was locked, or the locks were given back', async () => {
    expect(await after((tx, rows) => rows.lock(tx, 'accounts', [999]))).toBe('granted')
    expect(await after((tx, rows) => rows.lock(tx, 'accounts', [999], { wait: 500 }))).toBe(
      'granted',
    )
    expect(
      await after(async (tx: never, rows) => {
        const { query } = tx as { query(text: string): Promise<unknown> }
        const run = query.bind(tx)
        await run('SAVEPOINT here')
        await rows.lock(tx, 'accounts', [1])
        await run('ROLLBACK TO here')
      }),
    ).toBe('granted')
  })

  test('and the other way round, the marker keeps both', async () => {
    const locks = createLocks(room.driver, { strict: true, watch: false })
    const { client, sql } = await room.begin()
    const key = lockKey('advisory', 'first')
    await locks.acquire(client, key)
    for (const id of [1, 2, 3]) await room.rows.lock(client, 'accounts', [id])
    await locks.assertHeld(client, key)
    const [marker] = await sql<{ held: string }>(`SELECT current_setting('holdfast.held') AS held`)
    expect(marker?.held).toMatch(/^,x-?\d+,rx[0-9a-f]{12},$/)
  })
})

test.each([
  ['strength', { strength: 'for update; --' }],
  ['keyColumns', { keyColumns: [] }],
  ['keyColumns', { keyColumns: ['id', 'id'] }],
  ['identifier', { keyColumns: [''] }],
  ['columns', { columns: ['a\0b'] }],
] as const)('an impossible %s is refused', async (option, options) => {
  const { client } = await room.begin()
  const locking = room.rows.lock(client, 'accounts', [1], options as object)
  await expect(locking).rejects.toMatchObject({ code: 'OPTION_INVALID', details: { option } })
})
