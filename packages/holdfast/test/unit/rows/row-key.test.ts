import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { displayName } from '../../../src/core/table-name.ts'
import { setJson } from '../../../src/engines/postgres/rows/set-json.ts'
import { keyFields, type RowKey, rowTarget } from '../../../src/rows/row-key.ts'

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

  const each = 'a value for each key column'
  const exactly = 'exactly the key columns'
  const types = 'text, numbers, bigints or booleans; pass other types as text'
  const exact = 'a number JavaScript can hold exactly; pass large ones as bigint or text'
  const valid = 'valid text without NUL'
  // As many as there are columns, but one of them is inherited.
  const inherited = Object.assign(Object.create({ id: 1 }), { tenant: 'x', other: 'y' })

  test.each([
    ['one value for two columns', 1, two, each],
    ['a column too few', { id: 1 }, two, exactly],
    ['a column too many', { id: 1, tenant: 'x', more: 1 }, two, exactly],
    ['another column', { id: 1, other: 'x' }, two, exactly],
    ['null', null, one, types],
    ['undefined', undefined, one, types],
    ['null inside', { id: 1, tenant: null }, two, types],
    ['an inherited property', Object.create({ id: 1 }), one, exactly],
    ['an inherited property beside others', inherited, two, exactly],
    ['a date', new Date(), one, exactly],
    ['a list', [1], one, exactly],
    ['NaN', NaN, one, exact],
    ['Infinity', Infinity, one, exact],
    ['an integer that was rounded', 2 ** 53, one, exact],
    ['NUL', 'a\0b', one, valid],
    ['half a character', '\ud800', one, valid],
  ])('is refused: %s', (_, key, target, expected) => {
    expect(() => keyFields(key as RowKey, target)).toThrow(
      expect.objectContaining({
        code: 'ROWS_KEY_INVALID',
        details: { subject: `expected ${expected}` },
      }),
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

describe('a table', () => {
  test('is called as people write it', () => {
    expect([one, two].map(({ table }) => displayName(table))).toEqual(['orders', 'shop.a.b'])
  })

  test.each([
    ['no key column', 'orders', []],
    ['a key column twice', 'orders', ['id', 'id']],
  ])('is refused: %s', (_, table, keyColumns) => {
    expect(() => rowTarget(table, keyColumns)).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        details: { option: 'keyColumns', subject: 'keyColumns is empty or names a column twice' },
      }),
    )
  })

  test('is refused: a dot in a bare name', () => {
    expect(() => rowTarget('shop.orders')).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        details: { option: 'table', subject: 'a dot in a table name; use { schema, table }' },
      }),
    )
  })
})

test('new values keep what JSON alone would lose', () => {
  expect(
    setJson({ n: 2n ** 63n - 1n, raw: new Uint8Array([1, 255]), none: null, deep: [1n] }),
  ).toBe('{"n":9223372036854775807,"raw":"\\\\x01ff","none":null,"deep":[1]}')
})
