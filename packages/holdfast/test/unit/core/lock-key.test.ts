import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { legacyKey, lockKey, lockNamespace, lockNamespaces } from '../../../src/index.ts'

describe('lockKey', () => {
  test('is stable: this number is part of the contract with running deployments', () => {
    expect(lockKey('image-upload', 'user-42').lock).toEqual({
      kind: 'bigint',
      id: 3825454829769837720n,
    })
  })

  test('has a readable name and is its own scope', () => {
    expect(lockKey('cart', 'eu', 7)).toMatchObject({
      name: 'cart:eu:7',
      namespace: 'cart',
      scope: 'cart:eu:7',
    })
  })

  test('1, 1n and "1" are the same part', () => {
    expect(lockKey('n', 1).lock).toEqual(lockKey('n', '1').lock)
    expect(lockKey('n', 1n).lock).toEqual(lockKey('n', '1').lock)
  })

  test('parts cannot run into each other, nor into the namespace', () => {
    const part = fc.string({ minLength: 1, unit: fc.constantFrom('a', ':', '\u0001', '1', 'é') })
    const key = fc.tuple(part, fc.array(part, { minLength: 1, maxLength: 3 }))
    fc.assert(
      fc.property(key, key, ([nsA, partsA], [nsB, partsB]) => {
        const same = JSON.stringify([nsA, partsA]) === JSON.stringify([nsB, partsB])
        const a = lockKey(nsA, ...partsA).lock
        const b = lockKey(nsB, ...partsB).lock
        expect('id' in a && 'id' in b && a.id === b.id).toBe(same)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each(['\0', 'a\0b', '\ud800', 'x\udc00'])('T13: %j is no text of a key', (text) => {
    for (const make of [
      () => lockKey('cart', text),
      () => lockKey('cart', 'fine', text),
      () => lockKey(text, 1),
      () => legacyKey.hashtext(text),
      () => legacyKey.pair(1, { hashtext: text }),
    ]) {
      expect(make).toThrow(expect.objectContaining({ code: 'LOCK_KEY_INVALID' }))
    }
  })

  test('is a signed 64-bit number', () => {
    for (let n = 0; n < 100; n += 1) {
      const { lock } = lockKey('range', randomUUID())
      if (lock.kind !== 'bigint') throw new Error('bigint expected')
      expect(BigInt.asIntN(64, lock.id)).toBe(lock.id)
    }
  })

  test.each([
    ['no namespace', () => lockKey('', 'a')],
    ['no part', () => lockKey('a')],
    ['an empty part', () => lockKey('a', '')],
    ['a fraction', () => lockKey('a', 1.5)],
    ['an unsafe integer', () => lockKey('a', 2 ** 53)],
    ['undefined', () => lockKey('a', undefined as never)],
    ['a pair out of range', () => legacyKey.pair(2 ** 31, 0)],
    ['a pair that is no integer', () => legacyKey.pair(0.5, 0)],
    ['a bigint out of range', () => legacyKey.bigint(2n ** 63n)],
  ])('refuses %s', (_, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'LOCK_KEY_INVALID' }))
  })
})

const wrong = [
  undefined,
  null,
  1.5,
  NaN,
  2 ** 80,
  '',
  true,
  Symbol('some'),
  [],
  {},
  Object.create(null),
]

test.each([
  ['a namespace', (value: unknown) => lockKey(value as string, 'part')],
  ['a part', (value: unknown) => lockKey('name', value as string)],
  ['a text', (value: unknown) => legacyKey.hashtext((value === '' ? 1 : value) as string)],
  ['a number', (value: unknown) => legacyKey.bigint(value as bigint)],
  ['a first half', (value: unknown) => legacyKey.pair(value as number, 1)],
  ['a second half', (value: unknown) => legacyKey.pair(1, value as number)],
])('refuses whatever is not %s', (_, make) => {
  for (const value of wrong)
    expect(() => make(value)).toThrow(expect.objectContaining({ code: 'LOCK_KEY_INVALID' }))
})

describe('lockNamespace', () => {
  test('makes the same keys as lockKey', () => {
    const carts = lockNamespace('unit-carts', 'One change of a cart at a time')
    expect(carts('eu', 7)).toEqual(lockKey('unit-carts', 'eu', 7))
  })

  test('refuses a second declaration and lists the first for the playbook', () => {
    lockNamespace('unit-b', 'b')
    lockNamespace('unit-a', 'a')
    expect(() => lockNamespace('unit-a', 'again')).toThrow(
      expect.objectContaining({ code: 'LOCK_NAMESPACE_DUPLICATE' }),
    )
    const listed = lockNamespaces().filter(({ namespace }) => /^unit-[ab]$/.test(namespace))
    expect(listed).toEqual([
      { namespace: 'unit-a', about: 'a' },
      { namespace: 'unit-b', about: 'b' },
    ])
  })
})
