import { expect, test } from 'vitest'
import { legacyKey, lockKey } from '../../../src/core/locks/lock-key.ts'
import { LockMemory, lockMemoryOf } from '../../../src/core/locks/lock-memory.ts'

const names = (memory: LockMemory, tick?: number): string[] =>
  [...memory.since(tick)].map(({ key }) => key.name)

test('remembers a key by its number, once', () => {
  const memory = new LockMemory()
  const key = lockKey('cart', 7)
  memory.note(key)
  memory.note(lockKey('cart', 7))
  expect(names(memory)).toEqual(['cart:7'])
  expect(memory.get(key.lock.id)).toBe(key)
  memory.note(legacyKey.pair(1, 2))
  expect(memory.get('legacy:1,2')?.name).toBe('legacy:1,2')
})

test('tells what was used since', () => {
  const memory = new LockMemory()
  memory.note(lockKey('cart', 1))
  memory.note(lockKey('cart', 2))
  const tick = memory.tick()
  expect(names(memory, tick)).toEqual([])
  memory.note(lockKey('cart', 1))
  expect(names(memory, tick)).toEqual(['cart:1'])
})

test('keeps at most ten thousand and at least half of that, and knows which of them only the server can number', () => {
  const memory = new LockMemory()
  memory.note(legacyKey.hashtext('a'))
  expect([...memory.hashed()]).toHaveLength(1)
  for (let at = 0; at < 20_000; at += 1) memory.note(lockKey('cart', at))
  const kept = names(memory)
  expect(kept.length).toBeLessThanOrEqual(10_000)
  const latest = Array.from({ length: 5_000 }, (_, at) => `cart:${15_000 + at}`)
  expect(latest.filter((name) => !kept.includes(name))).toEqual([])
  expect([...memory.hashed()]).toEqual([])
})

test('is one for each driver', () => {
  const [one, two] = [{}, {}]
  expect(lockMemoryOf(one)).toBe(lockMemoryOf(one))
  expect(lockMemoryOf(one)).not.toBe(lockMemoryOf(two))
})
