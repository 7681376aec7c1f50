import { describe, expect, test } from 'vitest'
import { lockKey, shared } from '../../../../holdfast/src/index.ts'
import type { Flow } from '../../../src/run/options.ts'
import { appStage, ownHoldfast } from './app-stage.ts'
import { patienceMs } from './expectations.ts'
import type { Tx } from './ledger-stage.ts'

const explored = appStage(
  'CREATE TABLE booking (id serial PRIMARY KEY, room int NOT NULL, who text NOT NULL)',
  'TRUNCATE booking RESTART IDENTITY',
)

const key = (room: number) => lockKey('room', room)

/** Books a room if nobody has: right only under a lock. */
async function book(tx: Tx, who: string, room = 1): Promise<string> {
  const { rows } = await tx.query('SELECT FROM booking WHERE room = $1', [room])
  if (rows.length > 0) return 'taken'
  await tx.query('INSERT INTO booking (room, who) VALUES ($1, $2)', [room, who])
  return 'booked'
}

const guarding: Flow = (cx) => ownHoldfast(cx).guard(key(1), (tx) => book(tx, cx.flow))

const acquiring: Flow = (cx) => {
  const hf = ownHoldfast(cx)
  return hf.transaction(async (tx) => {
    await hf.locks.acquire(tx, key(1))
    return await book(tx, cx.flow)
  })
}

/** The transaction is the caller's own, BEGIN and COMMIT and all. */
const acquiringByHand: Flow = async (cx) => {
  const client = await cx.pool.connect()
  try {
    await client.query('BEGIN')
    await ownHoldfast(cx).locks.acquire(client, key(1))
    const answer = await book(client, cx.flow)
    await client.query('COMMIT')
    return answer
  } finally {
    client.release()
  }
}

const unlocked: Flow = (cx) => ownHoldfast(cx).transaction((tx) => book(tx, cx.flow))

describe('one key', () => {
  test('guard and guard', async () => {
    const report = await explored({ a: guarding, b: guarding })
    expect(report).toBeExhausted({ classes: 6, schedules: 9 })
  })

  test(
    'guard thrice',
    async () => {
      const report = await explored({ a: guarding, b: guarding, c: guarding }, { symmetric: true })
      expect(report).toBeExhausted({ classes: 24, schedules: 29 })
    },
    patienceMs,
  )

  test('guard and acquire', async () => {
    const report = await explored({ a: guarding, b: acquiring })
    expect(report).toBeExhausted({ classes: 5, schedules: 8 })
  })

  test(
    "guard, acquire, and acquire in a transaction of the caller's",
    async () => {
      const report = await explored({ a: guarding, b: acquiring, c: acquiringByHand })
      expect(report).toBeExhausted({ classes: 52, schedules: 59 })
    },
    patienceMs,
  )

  test('control: somebody who does not ask for the lock', async () => {
    expect(await explored({ a: guarding, b: unlocked })).toBeCaught(/no serial order/)
  })
})

describe('a key that is only tried', () => {
  const trying =
    (listens: boolean): Flow =>
    (cx) => {
      const hf = ownHoldfast(cx)
      return hf.transaction(async (tx) => {
        if (!(await hf.locks.tryAcquire(tx, key(1))) && listens) throw new Error('busy')
        return await book(tx, cx.flow)
      })
    }

  test('twice', async () => {
    const report = await explored({ a: trying(true), b: trying(true) })
    expect(report).toBeExhausted({ classes: 4, schedules: 8 })
  })

  test(
    'twice, and a guard',
    async () => {
      const report = await explored({ a: trying(true), b: guarding, c: trying(true) })
      expect(report).toBeExhausted({ classes: 66, schedules: 78 })
    },
    patienceMs,
  )

  test('control: the answer is not listened to', async () => {
    expect(await explored({ a: trying(true), b: trying(false) })).toBeCaught(/no serial order/)
  })
})

describe('several keys', () => {
  const guardingAll =
    (...rooms: readonly number[]): Flow =>
    (cx) =>
      ownHoldfast(cx).guard(rooms.map(key), async (tx) => {
        for (const room of rooms) await book(tx, cx.flow, room)
      })

  const oneByOne =
    (...rooms: readonly number[]): Flow =>
    (cx) => {
      const hf = ownHoldfast(cx)
      return hf.transaction(async (tx) => {
        for (const room of rooms) await hf.locks.acquire(tx, key(room))
        for (const room of rooms) await book(tx, cx.flow, room)
      })
    }

  test('in opposite orders: no deadlock', async () => {
    const report = await explored({ a: guardingAll(1, 2), b: guardingAll(2, 1) })
    expect(report).toBeExhausted({ classes: 4, schedules: 8 })
    expect(report.coverage.deadlocks).toBe(0)
  })

  test(
    'in a circle: no deadlock',
    async () => {
      const report = await explored({
        a: guardingAll(1, 2),
        b: guardingAll(2, 3),
        c: guardingAll(3, 1),
      })
      expect(report).toBeExhausted({ classes: 30, schedules: 33 })
      expect(report.coverage.deadlocks).toBe(0)
    },
    patienceMs,
  )

  test('control: one by one in opposite orders', async () => {
    const flows = { a: oneByOne(1, 2), b: oneByOne(2, 1) }
    expect(await explored(flows, { deadlocks: 'fail' })).toBeCaught(/circle/)
  })

  test('and what died of the deadlock is tried again', async () => {
    const report = await explored({ a: oneByOne(1, 2), b: oneByOne(2, 1) })
    expect(report).toBeExhausted({ classes: 12, schedules: 14 })
    expect(report.coverage.deadlocks).toBeGreaterThan(0)
  })
})

describe('a shared key', () => {
  const countingTwice =
    (locks: boolean): Flow =>
    (cx) => {
      const hf = ownHoldfast(cx)
      return hf.transaction(async (tx) => {
        if (locks) await hf.locks.acquire(tx, shared(key(1)))
        const first = await tx.query('SELECT FROM booking')
        const second = await tx.query('SELECT FROM booking')
        return [first.rowCount, second.rowCount]
      })
    }

  test(
    'two who read under it, and one who writes',
    async () => {
      const report = await explored({
        a: countingTwice(true),
        b: guarding,
        c: countingTwice(true),
      })
      expect(report).toBeExhausted({ classes: 64, schedules: 71 })
    },
    patienceMs,
  )

  test('control: read without it', async () => {
    expect(await explored({ a: countingTwice(false), b: guarding })).toBeCaught(/answered/)
  })
})
