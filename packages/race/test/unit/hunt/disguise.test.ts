/** Rows of a test that is committed: without what looks like a secret, and the same thing for the same thing. */
import { expect, test } from 'vitest'
import { disguise } from '../../../src/hunt/tests/disguise.ts'
import type { Input } from '../../../src/hunt/model.ts'

const request = (body: string, headers: readonly (readonly [string, string])[] = []): Input => ({
  kind: 'http',
  method: 'POST',
  path: '/x',
  headers,
  body,
})

function disguised(
  columns: readonly string[],
  rows: readonly (readonly (string | null)[])[],
  sent: readonly Input[] = [],
) {
  return disguise(
    {
      rows: { tables: { 'public.t': { columns, rows } }, sequences: {} },
      heard: [],
      inputs: sent,
      sentence: `t ${rows[0]?.[0]}: n is 1`,
    },
    sent,
  )
}
const cells = (of: ReturnType<typeof disguised>): unknown => of.rows.tables['public.t']?.rows

test.each([
  ['password', 'hunter2', /^x*1$/],
  ['password_hash', '$2b$10$abcdefghijklmnopqrstuv', /^placeholder-1$/],
  ['api_key', 'key_live_4711', /^placeholder-1$/],
  ['"resetToken"', '018f3f2e-7b1a-7c3e-8d2f-0123456789ab', /^0{8}-0000-4000-8000-0{11}1$/],
  ['token', '\\x0a0b0c0d', /^\\x0{7}1$/],
  ['sha_hash', '9f86d081884c7d65', /^0{15}1$/],
  ['email', 'ann@corp.com', /^person1@example\.com$/],
  ['phone', '4917012345', /^9{9}1$/],
  ['secret', 's', /^1$/],
])('%s: %s', (column, value, form) => {
  const found = disguised([column], [[value], [null]])
  expect(cells(found)).toEqual([[expect.stringMatching(form)], [null]])
  expect(found.disguised).toEqual([`public.t.${column}`])
})

test.each([
  ['password_changed_at', '2026-01-02 00:00:00+00'],
  ['token_expires', '2026-01-02'],
  ['login_attempts', '3'],
  ['email_verified', 't'],
  ['session_id', '7'],
  ['session', 'keynote'],
  ['note', 'hunter2'],
])('%s: %s is none', (column, value) => {
  const found = disguised([column], [[value]])
  expect(cells(found)).toEqual([[value]])
  expect(found.disguised).toEqual([])
})

test('the same value is the same thing wherever it stands; a word that means other things is left', () => {
  const sent = request('{"email":"Ann@corp.com","password":"password"}')
  const rows = [
    ['ann@corp.com', 'password', 'for ann@corp.com', '{"apiKey":"k-1234567","n":1}'],
    ['bob@corp.com', 'password', 'password', null],
  ]
  const found = disguised(['email', 'password', 'note', 'doc'], rows, [sent])
  const [one, other] = found.rows.tables['public.t']?.rows ?? []
  expect(one?.[0]).not.toBe(other?.[0])
  expect(one?.[1]).toBe(other?.[1])
  expect(one?.[1]).not.toBe('password')
  expect([one?.[2], other?.[2]]).toEqual([`for ${one?.[0]}`, 'password'])
  expect(JSON.parse(one?.[3] ?? '')).toEqual({ apiKey: expect.not.stringMatching(/k-1/), n: 1 })
  expect(JSON.stringify(found.inputs)).toContain(`\\"email\\":\\"${one?.[0]}\\",\\"password\\"`)
  expect(found.sentence).toBe(`t ${one?.[0]}: n is 1`)
})

test('a header that rows know goes with them; one that they do not know has to be set', () => {
  const sent = (authorization: string): Input => request('', [['authorization', authorization]])
  const known = disguised(['id'], [['ses-4711']], [sent('Bearer ses-4711')])
  expect(cells(known)).toEqual([['xxxxxxx1']])
  expect(known.secrets).toEqual({ authorization: 'Bearer xxxxxxx1' })
  const unknown = disguised(['id'], [['ses-4711']], [sent('Bearer other-4711')])
  expect(cells(unknown)).toEqual([['ses-4711']])
  expect(unknown.secrets).toEqual({})
})
