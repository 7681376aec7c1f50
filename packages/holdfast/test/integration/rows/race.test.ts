/** The races that row locks are for, each forced, each with its unprotected twin as the control. */
import { waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorOf, type OpenTransaction, openRoom, type Room } from './open-room.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)`)
})
beforeEach(async () => {
  await room.sql('TRUNCATE accounts')
  // Stored backwards, so that the order of the keys is not the order of the table by chance.
  await room.sql('INSERT INTO accounts SELECT i, 100 FROM generate_series(10, 1, -1) AS i')
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

const balance = async (on: { sql: OpenTransaction['sql'] }, id: number): Promise<number> =>
  (await on.sql<{ balance: number }>('SELECT balance FROM accounts WHERE id = $1', [id]))[0]
    ?.balance as number
const setBalance = (on: OpenTransaction, id: number, to: number): Promise<unknown> =>
  on.sql('UPDATE accounts SET balance = $2 WHERE id = $1', [id, to])

describe('two that read, compute and write', () => {
  test('lose nothing if the row is locked first', async () => {
    const [first, second] = [await room.begin(), await room.begin()]
    const seen = (await room.rows.lock<{ balance: number }>(first.client, 'accounts', [1])).rows[0]
    const locking = room.rows.lock<{ balance: number }>(second.client, 'accounts', [1])
    await waitUntilBlocked(room.observer, second.pid)
    await setBalance(first, 1, (seen?.balance ?? 0) + 10)
    await first.commit()
    await setBalance(second, 1, ((await locking).rows[0]?.balance ?? 0) + 10)
    await second.commit()
    expect(await balance(room, 1)).toBe(120)
  })

  test('control: without the lock one of the two is lost', async () => {
    const [first, second] = [await room.begin(), await room.begin()]
    const seen = [await balance(first, 1), await balance(second, 1)]
    await setBalance(first, 1, (seen[0] as number) + 10)
    await first.commit()
    await setBalance(second, 1, (seen[1] as number) + 10)
    await second.commit()
    expect(await balance(room, 1)).toBe(110)
  })
})

describe('two that lock the same rows in opposite order', () => {
  /**
   * Each list has a row in its middle that a third session holds, so that both are stopped after
   * their first lock and let go together.
   */
  const lists = [
    [1, 5, 2],
    [2, 6, 1],
  ] as const

  async function cross(
    lock: (on: OpenTransaction, keys: readonly number[]) => Promise<unknown>,
  ): Promise<(string | undefined)[]> {
    const gate = await room.begin()
    await gate.sql('SELECT FROM accounts WHERE id IN (5, 6) FOR UPDATE')
    const sessions = [await room.begin(), await room.begin()] as const
    const running = lists.map(async (keys, at) => {
      const session = sessions[at] as OpenTransaction
      await lock(session, keys)
      await session.commit()
    })
    const settled = Promise.allSettled(running)
    for (const { pid } of sessions) await waitUntilBlocked(room.observer, pid)
    await gate.rollback()
    return (await settled).map((outcome) =>
      outcome.status === 'rejected' ? (outcome.reason as { code: string }).code : undefined,
    )
  }

  test('do not deadlock', async () => {
    expect(await cross(({ client }, keys) => room.rows.lock(client, 'accounts', keys))).toEqual([
      undefined,
      undefined,
    ])
  })

  test('because each takes the smallest key first, whatever the order of the list or the table', async () => {
    const gate = await room.begin()
    await gate.sql('SELECT FROM accounts WHERE id = 2 FOR UPDATE')
    const session = await room.begin()
    const locking = room.rows.lock(session.client, 'accounts', [3, 2, 4, 1])
    await waitUntilBlocked(room.observer, session.pid)
    const free = await room.sql('SELECT id FROM accounts WHERE id <= 4 FOR UPDATE SKIP LOCKED')
    expect(free.map(({ id }) => id as number)).toEqual([4, 3])
    await gate.rollback()
    await locking
  })

  test('not even if they name the key columns in another order', async () => {
    await room.sql('DROP TABLE IF EXISTS pairs')
    await room.sql('CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b))')
    // By (a, b) the order is 1, 2; by (b, a) it is 2, 1.
    await room.sql('INSERT INTO pairs VALUES (1, 9), (2, 0)')
    const keys = [
      { a: 1, b: 9 },
      { a: 2, b: 0 },
    ]
    const gate = await room.begin()
    await gate.sql('SELECT FROM pairs WHERE a = 1 FOR UPDATE')
    for (const keyColumns of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const session = await room.begin()
      room.rows.lock(session.client, 'pairs', keys, { keyColumns }).catch(() => undefined)
      await waitUntilBlocked(room.observer, session.pid)
    }
    // Both stand at the first row; neither holds the second.
    const free = await room.sql('SELECT a FROM pairs FOR UPDATE SKIP LOCKED')
    expect(free).toEqual([{ a: 2 }])
    await gate.rollback()
    await room.tidy()
  })

  test('control: locked in the order given, they deadlock', async () => {
    const codes = await cross(({ sql }, keys) =>
      sql(
        `SELECT FROM unnest($1::int[]) WITH ORDINALITY AS k(id, n) JOIN accounts AS a USING (id)
         ORDER BY n FOR NO KEY UPDATE OF a`,
        [keys],
      ),
    )
    expect(new Set(codes)).toEqual(new Set(['40P01', undefined]))
  })
})

describe.each(['repeatable read', 'serializable'] as const)('at %s', (isolation) => {
  test('a row that changed since the snapshot is refused by the server', async () => {
    const session = await room.begin()
    await session.sql(`ROLLBACK`)
    await session.sql(`BEGIN ISOLATION LEVEL ${isolation}`)
    expect(await balance(session, 1)).toBe(100)
    await room.sql('UPDATE accounts SET balance = 0 WHERE id = 1')
    const error = await errorOf(room.rows.lock(session.client, 'accounts', [1, 2]))
    expect(error.code).toBe('40001')
  })

  test('a row that did not change is locked', async () => {
    const session = await room.begin()
    await session.sql(`ROLLBACK`)
    await session.sql(`BEGIN ISOLATION LEVEL ${isolation}`)
    expect((await room.rows.lock(session.client, 'accounts', [1, 2])).rows).toHaveLength(2)
  })
})

test('a row that moved to another partition is refused by the server, at every level', async () => {
  await room.sql(`CREATE TABLE moving (id int PRIMARY KEY) PARTITION BY RANGE (id)`)
  await room.sql(`CREATE TABLE moving_1 PARTITION OF moving FOR VALUES FROM (0) TO (10)`)
  await room.sql(`CREATE TABLE moving_2 PARTITION OF moving FOR VALUES FROM (10) TO (20)`)
  await room.sql(`INSERT INTO moving VALUES (1)`)
  const [mover, waiter] = [await room.begin(), await room.begin()]
  await mover.sql('UPDATE moving SET id = 11')
  const failing = errorOf(room.rows.lock(waiter.client, 'moving', [1]))
  await waitUntilBlocked(room.observer, waiter.pid)
  await mover.commit()
  expect((await failing).code).toBe('40001')
})

test('a lock ends with the transaction, and with a savepoint that is rolled back', async () => {
  const session = await room.begin()
  await session.sql('SAVEPOINT here')
  await room.rows.lock(session.client, 'accounts', [1])
  const other = await room.begin()
  const skip = { wait: 'skip' } as const
  expect((await room.rows.lock(other.client, 'accounts', [1], skip)).skipped).toEqual([1])
  await session.sql('ROLLBACK TO here')
  expect((await room.rows.lock(other.client, 'accounts', [1], skip)).rows).toHaveLength(1)
  await other.rollback()
  await waitUntil('the lock is gone', async () => {
    const free = await room.sql('SELECT FROM accounts WHERE id = 1 FOR UPDATE SKIP LOCKED')
    return free.length === 1 ? true : undefined
  })
})
