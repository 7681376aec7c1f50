import { expect, test } from 'vitest'
import { maskSecrets } from '../../../src/hunt/report/mask-secrets.ts'
import type { HttpInput, Input } from '../../../src/hunt/model.ts'

const request = (more: Partial<HttpInput>): Input => ({
  kind: 'http',
  method: 'POST',
  path: '/resets',
  headers: [],
  body: undefined,
  ...more,
})

test.each<[string, Input, string]>([
  ['a field of the body', request({ body: '{"user":1,"password":"hunter2"}' }), 'hunter2'],
  ['a field within one', request({ body: '{"new":{"apiKey":["k-1234"]}}' }), 'k-1234'],
  ['a field of a form', request({ body: 'user=1&password=a%20b%26c' }), 'a b&c'],
  ['the query', request({ path: '/resets?token=tok9x' }), 'tok9x'],
  ['a header', request({ headers: [['authorization', 'Bearer abc.def']] }), 'abc.def'],
  ['a cookie', request({ headers: [['cookie', 'theme=dark; sid=s3ss10n']] }), 's3ss10n'],
  [
    'a login in base64',
    request({
      headers: [['authorization', `Basic ${Buffer.from('bob:hunter2').toString('base64')}`]],
    }),
    'hunter2',
  ],
  [
    'a cookie that is encoded and signed',
    request({ headers: [['cookie', 'sid=s%3Au7FfkQ.sig%2Bsig']] }),
    'u7FfkQ',
  ],
  ['an argument', { kind: 'arguments', values: [{ secret: 'abcd' }, 7] }, 'abcd'],
])('a value of %s is nowhere in what is told', (_, input, value) => {
  const step = { statements: [`INSERT INTO resets VALUES (1, '${value}')`] }
  const told = { steps: [step, step], rows: new Map([['resets', [[1, value]]]]), other: { n: 1 } }
  const shown = maskSecrets(told, [input])
  expect(JSON.stringify([shown.steps, [...shown.rows]])).not.toContain(value)
  expect(shown.steps[0]?.statements[0]).toMatch(/^INSERT INTO resets VALUES \(1, '.+'\)$/)
  expect(shown.other).toBe(told.other)
  // The same thing twice is one thing.
  expect(shown.steps[0]).toBe(shown.steps[1])
  // The control: without the input it stays.
  expect(maskSecrets(told, [request({})])).toBe(told)
})

test('a report that refers to itself ends', () => {
  const told: { text: string; self?: unknown } = { text: 'hunter2' }
  told.self = told
  const shown = maskSecrets(told, [request({ body: '{"password":"hunter2"}' })])
  expect(shown.text).not.toContain('hunter2')
})
