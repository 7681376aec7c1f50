import { expect, test } from 'vitest'
import { errorText } from '../../../src/core/errors/error-text.ts'

const revoked = Proxy.revocable({}, {})
revoked.revoke()
const throwing = {
  toString: () => {
    throw new Error('no text')
  },
}

test.each([
  ['an error', new Error('x'), 'x', 'Error: x'],
  ['one without a message', Object.assign(new Error(), { message: undefined }), 'Error', 'Error'],
  ['a message that is no text', Object.assign(new TypeError(), { message: { a: 1 } }), 'TypeError'],
  ['a text', 'failed', 'failed'],
  ['nothing', undefined, 'undefined'],
  ['a symbol', Symbol('failed'), 'Symbol(failed)'],
  ['no prototype', Object.create(null), 'an error that has no text'],
  ['a String() that throws', throwing, 'an error that has no text'],
  ['a proxy that was revoked', revoked.proxy, 'an error that has no text'],
  ['what no text column can hold', new Error('a\0b\ud800'), 'ab\ufffd', 'Error: ab\ufffd'],
])('%s', (_, error, plain, named = plain) => {
  expect(errorText(error, 100)).toBe(plain)
  expect(errorText(error, 100, { named: true })).toBe(named)
})

test('no longer than is said', () => {
  expect(errorText(new Error('x'.repeat(9)), 4)).toBe('xxxx')
})
