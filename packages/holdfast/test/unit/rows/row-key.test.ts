import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { keyFields, type RowKey, rowTarget } from '../../../src/rows/row-key.ts'
import { setJson } from '../../../src/rows/set-values.ts'

const one = rowTarget('orders')
const two = rowTarget({ schema: 'shop', table: 'a.b' }, ['tenant', 'id'])

describe('a key', () => {
  test.each<[RowKey, Record<string, string>]>([
    [1, { id: '1' }],
    [9007199254740993n, { id: '9007199254740993' }],
    ['', { id: '' }],
    [true, { id: 'true' }],
    [0.5, { id: '0.5' }],
    [{ id: 7 }, { id: '7' }],
  ])('%s of one column', (key, fields) => {
    expect(keyFields(key, one)).toEqual(fields)
  })

  test('of several columns has exactly these', () => {
    expect(keyFields({ id: 1, tenant: 'x' }, two)).toEqual({ tenant: 'x', id: '1' })
  })

  test.each([
    ['one value for two columns', 1, two],
    ['a column too few', { id: 1 }, two],
    ['a column too many', { id: 1, tenant: 'x', more: 1 }, two],
    ['another column', { id: 1, other: 'x' }, two],
    ['null', null, one],
    ['undefined', undefined, one],
    ['null inside', { id: 1, tenant: null }, two],
    ['an inherited property', Object.create({ id: 1 }), one],
    ['a date', new Date(), one],
    ['a list', [1], one],
    ['NaN', NaN, one],
    ['Infinity', Infinity, one],
    ['an integer that was rounded', 2 ** 53, one],
    ['NUL', 'a\0b', one],
    ['half a character', '\ud800', one],
  ])('is refused: %s', (_, key, target) => {
    expect(() => keyFields(key as RowKey, target)).toThrow(
      expect.objectContaining({ code: 'ROWS_KEY_INVALID' }),
    )
  })

  test('never loses a character on its way through JSON', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        fc.pre(!text.includes('\0') && text.isWellFormed())
        expect(JSON.parse(JSON.stringify(keyFields(text, one)))).toEqual({ id: text })
      }),
    )
  })
})

test('new values keep what JSON alone would lose', () => {
  expect(
    setJson({ n: 2n ** 63n - 1n, raw: new Uint8Array([1, 255]), none: null, deep: [1n] }),
  ).toBe('{"n":9223372036854775807,"raw":"\\\\x01ff","none":null,"deep":[1]}')
})
