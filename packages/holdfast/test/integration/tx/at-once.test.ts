/** Calls that are made at once in one transaction, in every pair: each is told what is so, and leaves the settings alone. */
import { sample, waitUntilBlocked } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createLocks, lockKey, type Locks } from '../../../src/entries/locks.ts'
import { createOnce } from '../../../src/entries/once.ts'
import { errorOf, openRoom, type OpenTransaction, type Room } from '../rows/open-room.ts'
import { migrate } from '../../../src/schema/index.ts'
import { inTime } from '../../support/in-time.ts'

let room: Room
type Calls = Readonly<Record<string, (tx: PoolClient, id: number) => Promise<unknown>>>
let calls: Calls
let locks: Locks<PoolClient>

beforeAll(async () => {
  room = await openRoom()
  await migrate(room.driver)
  await room.sql('CREATE TABLE things (id int PRIMARY KEY, version int NOT NULL)')
  await room.sql('CREATE TABLE done (id int)')
  // The order is another matter.
  locks = createLocks(room.driver, { strict: false })
  const once = createOnce(room.driver)
  const key = (id: number): ReturnType<typeof lockKey> => lockKey('at-once', id)
  let keys = 0
  const working =
    (fails: boolean) =>
    async (tx: PoolClient, id: number): Promise<unknown> =>
      await once(tx, `at-once-${(keys += 1)}`, async (inner) => {
        await inner.query('INSERT INTO done VALUES ($1)', [id])
        // A call of its own body has not to wait for the one that it is part of.
        await room.rows.lock(inner, 'things', [id])
        if (fails) throw new Error('the body fails')
      })
  calls = {
    lock: async (tx, id) => room.rows.lock(tx, 'things', [id]),
    'lock, kept': async (tx, id) => room.rows.lock(tx, 'things', [id], { keepTransaction: true }),
    lockTable: async (tx) => room.rows.lockTable(tx, 'things', 'row share'),
    updateVersioned: async (tx, id) =>
      room.rows.updateVersioned(tx, 'things', id, { version: 1, set: {} }),
    acquire: async (tx, id) => locks.acquire(tx, key(id)),
    'acquire, kept': async (tx, id) => locks.acquire(tx, key(id), { keepTransaction: true }),
    tryAcquire: async (tx, id) => locks.tryAcquire(tx, key(id)),
    once: working(false),
    'once, failing': working(true),
  }
})
beforeEach(async () => {
  await room.sql('TRUNCATE things, done')
  await room.sql('INSERT INTO things SELECT i, 1 FROM generate_series(1, 5) AS i')
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

const names = [
  'lock',
  'lock, kept',
  'lockTable',
  'updateVersioned',
  'acquire',
  'acquire, kept',
  'tryAcquire',
  'once',
  'once, failing',
]
const pairs = names.flatMap((first) => names.map((second) => [first, second] as const))

const settings = `SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement`

/** Somebody else has key 1 and row 1 until both calls have been made. */
async function withSomebodyInTheWay(
  run: () => Promise<unknown>[],
  pid: number,
): Promise<unknown[]> {
  const other = await room.begin()
  await other.sql('SELECT FROM things WHERE id = 1 FOR UPDATE')
  await locks.acquire(other.client, lockKey('at-once', 1))
  const running = run().map(
    async (each) =>
      await each.then(
        () => 'ok',
        (error: Error) => error.message,
      ),
  )
  const arrived = waitUntilBlocked(room.observer, pid).catch(() => undefined)
  await Promise.race([arrived, Promise.all(running)])
  await other.rollback()
  return await Promise.all(running)
}

test.each(sample(pairs))('%s, and %s', async (first, second) => {
  const mine = await room.begin()
  await mine.sql(`SET LOCAL lock_timeout = '5s'`)
  const told = await withSomebodyInTheWay(
    () => [first, second].map((name, at) => calls[name]?.(mine.client, at + 1) as Promise<unknown>),
    mine.pid,
  )
  expect(told).toEqual(
    [first, second].map((name) => (name === 'once, failing' ? 'the body fails' : 'ok')),
  )
  expect(await mine.sql(settings)).toEqual([{ lock: '5s', statement: '0' }])
  await mine.commit()
  const ids = (name: string): number[] =>
    [first, second].flatMap((each, at) => (each === name ? [at + 1] : []))
  expect(await room.sql('SELECT id FROM done ORDER BY id')).toEqual(
    ids('once').map((id) => ({ id })),
  )
  expect(await room.sql('SELECT id FROM things WHERE version = 2 ORDER BY id')).toEqual(
    ids('updateVersioned').map((id) => ({ id })),
  )
})

describe('who waits for its turn', () => {
  async function behindAHeldRow(
    rest: (mine: OpenTransaction) => readonly Promise<unknown>[],
    keepTransaction = false,
  ): Promise<{ readonly mine: OpenTransaction; readonly all: readonly Promise<unknown>[] }> {
    const [holder, mine] = [await room.begin(), await room.begin()]
    await holder.sql('SELECT FROM things WHERE id = 1 FOR UPDATE')
    const first = room.rows.lock(mine.client, 'things', [1], { wait: 200, keepTransaction })
    const all = [first, ...rest(mine)]
    for (const each of all) each.catch(() => undefined)
    await errorOf(first)
    return { mine, all }
  }

  test.each([false, true])(
    'is not part of the next transaction on its client (kept: %s)',
    async (kept) => {
      const { mine, all } = await behindAHeldRow(
        ({ client }) =>
          [2, 3, 4, 5].map(async (id) =>
            room.rows.updateVersioned(client, 'things', id, { version: 1, set: {} }),
          ),
        kept,
      )
      await mine.sql('ROLLBACK')
      await mine.sql('BEGIN')
      await mine.sql('SELECT pg_sleep(0.05)')
      await Promise.allSettled(all)
      await mine.commit()
      expect(await room.sql('SELECT id FROM things WHERE version = 2')).toEqual([])
    },
  )

  test('counts its limit from the call', async () => {
    const began = performance.now()
    const { all } = await behindAHeldRow(
      ({ client }) =>
        [1, 1].map(async () =>
          room.rows.lock(client, 'things', [1], { wait: 200, keepTransaction: true }),
        ),
      true,
    )
    const codes = (await Promise.all(all.map(async (each) => errorOf(each)))).map(
      ({ code }) => code,
    )
    expect(codes).toEqual(['ROWS_TIMEOUT', 'ROWS_TIMEOUT', 'ROWS_TIMEOUT'])
    inTime(performance.now() - began, 550)
  })
})
