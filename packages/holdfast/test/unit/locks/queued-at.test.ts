import { expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { keyQueuesOf } from '../../../src/core/locks/key-queues.ts'
import { legacyKey, lockKey } from '../../../src/core/locks/lock-key.ts'
import type { WantedLock } from '../../../src/core/locks/wanted-lock.ts'
import { queuedAt } from '../../../src/locks/queued-guard.ts'

/** Of several keys one has a queue: the one that PostgreSQL locks first, where that is known here. */
const driver = { name: 'one server' } as Driver<never>
const sharded = { name: 'several', shards: {} } as unknown as Driver<never>
const keys = [lockKey('a', 1), lockKey('a', 2), lockKey('a', 3)].toSorted((x, y) =>
  x.lock.id < y.lock.id ? -1 : 1,
)
const [low, middle, high] = keys as [
  ReturnType<typeof lockKey>,
  ReturnType<typeof lockKey>,
  ReturnType<typeof lockKey>,
]
const hashed = legacyKey.hashtext('somebody')
const exclusive = (key: WantedLock['key']): WantedLock => ({ key, mode: 'exclusive' })
const shared = (key: WantedLock['key']): WantedLock => ({ key, mode: 'shared' })
const keyOf = (...wanted: readonly WantedLock[]): unknown =>
  queuedAt(driver, keyQueuesOf(driver), wanted)?.key

test('one key, if it is wanted exclusively', () => {
  expect(keyOf(exclusive(low))).toBe(low)
  expect(keyOf(exclusive(hashed))).toBe(hashed)
  expect(keyOf(shared(low))).toBe(undefined)
  expect(keyOf()).toBe(undefined)
})

test('of several the lowest number, in whatever order they are given', () => {
  expect(keyOf(exclusive(high), exclusive(low), exclusive(middle))).toBe(low)
  expect(keyOf(exclusive(low), exclusive(high))).toBe(low)
  expect(keyOf(exclusive(middle), shared(high))).toBe(middle)
  expect(keyOf(shared(low), exclusive(high))).toBe(undefined)
})

test('wanted twice, the stronger counts', () => {
  expect(keyOf(shared(low), exclusive(low))).toBe(low)
  expect(keyOf(exclusive(low), shared(low))).toBe(low)
})

test('none, where only the server knows the number', () => {
  expect(keyOf(exclusive(low), exclusive(hashed))).toBe(undefined)
})

test('the number of a lock is that of one server', () => {
  const queues = keyQueuesOf(driver)
  expect(queuedAt(driver, queues, [exclusive(low)])?.id).toBe(low.lock.id)
  expect(queuedAt(driver, queues, [exclusive(hashed)])?.id).toBe(hashed.name)
  expect(queuedAt(sharded, queues, [exclusive(low)])?.id).toBe(`${low.lock.id}/${low.scope}`)
})
