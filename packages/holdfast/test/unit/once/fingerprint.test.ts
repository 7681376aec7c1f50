import { createHash } from 'node:crypto'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fingerprintOf } from '../../../src/once/names.ts'

const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex')

/** What 0.1 stored: records of it are in databases. */
function stored(payload: unknown): string {
  if (typeof payload === 'string' || payload instanceof Uint8Array) return sha256(payload)
  return sha256(
    JSON.stringify(payload, (_, value: unknown) =>
      typeof value !== 'object' || value === null || Array.isArray(value)
        ? value
        : Object.fromEntries(
            Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)),
          ),
    ),
  )
}

/** Plain data, with bytes and dates in it, and properties that are not there. */
const { data } = fc.letrec<{ data: unknown }>((tie) => ({
  data: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array(),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.array(tie('data')),
    fc.dictionary(fc.string(), fc.oneof(tie('data'), fc.constant(undefined))),
  ),
}))

class Money {
  readonly amount = 1
}

const notData = fc.constantFrom<unknown>(
  () => 1,
  Symbol('a'),
  1n,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  new Map([['a', 1]]),
  new Set([1]),
  new WeakMap(),
  new URLSearchParams('amount=1'),
  new FormData(),
  new Headers(),
  new Request('http://localhost/'),
  new Blob(['a']),
  new Error('a'),
  /a/,
  Promise.resolve(1),
  Object(1),
)

/** The value somewhere in data: the path says in how many lists and objects. */
const within = (value: unknown, path: readonly boolean[], beside: unknown): unknown =>
  path.reduce((inner, isList) => (isList ? [beside, inner] : { beside, inner }), value)
const path = fc.array(fc.boolean(), { maxLength: 4 })

describe('fingerprints', () => {
  test('are not made of what a class made: what it keeps to itself would not count', () => {
    expect(() => fingerprintOf(new Money())).toThrow('payload must be text, bytes or plain data')
    expect(() => fingerprintOf({ price: new Money() })).toThrow('plain data')
  })

  test('of text, bytes and plain data are those that were stored before', () => {
    fc.assert(
      fc.property(data, (payload) => {
        expect(fingerprintOf(payload)).toBe(stored(payload))
      }),
      { numRuns: 500 },
    )
  })

  test('are known by heart', () => {
    expect(fingerprintOf({ to: { b: 2, a: 1 }, amount: 1 })).toBe(
      sha256('{"amount":1,"to":{"a":1,"b":2}}'),
    )
    expect(fingerprintOf({ file: new Uint8Array([7]) })).toBe(sha256('{"file":{"0":7}}'))
    expect(fingerprintOf({ file: Buffer.from([7]) })).toBe(
      sha256('{"file":{"data":[7],"type":"Buffer"}}'),
    )
    expect(fingerprintOf([new Date(0), null, { a: undefined }])).toBe(
      sha256('["1970-01-01T00:00:00.000Z",null,{}]'),
    )
  })

  test('of bytes are the same whatever they are in', () => {
    const bytes = fc.array(fc.uint8Array({ minLength: 8, maxLength: 8 }), { maxLength: 4 })
    fc.assert(
      fc.property(bytes, fc.integer({ min: 0, max: 3 }), path, (parts, before, at) => {
        const buffer = Buffer.concat(parts)
        const length = buffer.byteLength
        for (const whole of [new ArrayBuffer(length), new SharedArrayBuffer(length)]) {
          new Uint8Array(whole).set(buffer)
          for (const view of [
            new Uint8Array(whole),
            new Uint8ClampedArray(whole),
            new Uint16Array(whole),
            new Float64Array(whole),
            new BigInt64Array(whole),
          ])
            expect(fingerprintOf(view)).toBe(sha256(buffer))
          const roomy = new ArrayBuffer(before + length + 1)
          new Uint8Array(roomy).set(buffer, before)
          for (const each of [whole, new DataView(whole), new DataView(roomy, before, length)]) {
            expect(fingerprintOf(each)).toBe(sha256(buffer))
            expect(fingerprintOf(within(each, [...at, true], 1))).toBe(
              stored(within(buffer, [...at, true], 1)),
            )
          }
        }
      }),
    )
  })

  test('of what is no data are refused, at any depth', () => {
    fc.assert(
      fc.property(notData, path, data, (value, at, beside) => {
        expect(() => fingerprintOf(within(value, at, beside))).toThrow(
          expect.objectContaining({ code: 'OPTION_INVALID', details: refusal }),
        )
      }),
      { numRuns: 500 },
    )
    expect(() => fingerprintOf([undefined])).toThrow(/OPTION_INVALID/)
    const round: Record<string, unknown> = {}
    round['self'] = round
    expect(() => fingerprintOf(round)).toThrow(/OPTION_INVALID/)
  })

  test('of objects that say how they are written are those of what they say', () => {
    fc.assert(
      fc.property(data, path, (said, at) => {
        const saying = Object.assign(new Money(), { toJSON: () => said })
        const payload = within(saying, at, 1)
        expect(fingerprintOf(payload)).toBe(stored(payload))
      }),
    )
  })

  test('of plain objects do not depend on where they were made', () => {
    const bare = Object.assign(Object.create(null) as object, { a: [1] })
    // As parsers of queries make them.
    const parsed = Object.assign(Object.create(Object.create(null) as object) as object, { a: [1] })
    const foreign: unknown = runInNewContext('({ a: [1] })')
    for (const each of [bare, parsed, foreign])
      expect(fingerprintOf(each)).toBe(fingerprintOf({ a: [1] }))
    const bytes: unknown = runInNewContext('new Uint8Array([1, 2]).buffer')
    expect(fingerprintOf(bytes)).toBe(fingerprintOf(Buffer.from([1, 2])))
  })
})

const refusal = { option: 'payload', subject: 'payload must be text, bytes or plain data' }
