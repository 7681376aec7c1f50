/** Inputs of calls: their single values, other values for them, and what of them is written down. */
import { expect, test } from 'vitest'
import type { KnownTable } from '../../../src/core/model.ts'
import { fieldsOf, withEvery } from '../../../src/hunt/edges/fields.ts'
import { endpointOf, shownInput } from '../../../src/hunt/record/http-input.ts'
import type { HttpInput } from '../../../src/hunt/model.ts'
import { variationsOf } from '../../../src/hunt/edges/vary.ts'

const request: HttpInput = {
  kind: 'http',
  method: 'POST',
  path: '/shows/7/book?day=monday&token=t0p',
  headers: [
    ['authorization', 'Bearer s3cret'],
    ['idempotency-key', 'k1'],
    ['accept', '*/*'],
  ],
  body: '{"guest":{"name":"ann","password":"h1dden"},"seats":[2,3]}',
}

const bodyOf = (input: unknown): unknown => JSON.parse((input as HttpInput).body ?? '')

test.each([
  ['/shows/7/book?day=1', 'POST /shows/:n/book'],
  ['/users/018f3f2e-7b1a-7c3e-8d2f-0123456789ab', 'POST /users/:n'],
  ['/coupons/SPRING', 'POST /coupons/SPRING'],
])('the endpoint of %s is %s', (path, name) => {
  expect(endpointOf({ method: 'POST', path })).toBe(name)
})

test('fields are the single values of body, query, path and own headers; never secrets', () => {
  expect(fieldsOf(request).map(({ path, value }) => [path, value])).toEqual([
    ['body.guest.name', 'ann'],
    ['body.seats.0', 2],
    ['body.seats.1', 3],
    ['query.day', 'monday'],
    ['path.1', 'shows'],
    ['path.2', '7'],
    ['path.3', 'book'],
    ['header.idempotency-key', 'k1'],
  ])
})

test('a field is changed in its place, and nothing else is', () => {
  const changed = Object.fromEntries(
    fieldsOf(request).map((field) => [field.path, field.with('x')]),
  )
  expect(bodyOf(changed['body.seats.1'])).toEqual({
    guest: { name: 'ann', password: 'h1dden' },
    seats: [2, 'x'],
  })
  expect(changed['path.2']).toEqual({ ...request, path: '/shows/x/book?day=monday&token=t0p' })
  expect(changed['query.day']).toEqual({ ...request, path: '/shows/7/book?day=x&token=t0p' })
  expect(changed['header.idempotency-key']).toMatchObject({
    headers: [
      ['authorization', 'Bearer s3cret'],
      ['idempotency-key', 'x'],
      ['accept', '*/*'],
    ],
  })
})

test('a value is given another one wherever it stands', () => {
  const twice = { ...request, path: '/a/2', body: '{"of":2,"to":"2","n":22}' }
  const changed = withEvery(twice, '2', 5) as HttpInput
  expect(changed.path).toBe('/a/5')
  expect(bodyOf(changed)).toEqual({ of: 5, to: 5, n: 22 })
})

test('secrets of headers, query and body are not written down', () => {
  const shown = JSON.stringify(shownInput(request))
  for (const one of ['s3cret', 't0p', 'h1dden']) expect(shown).not.toContain(one)
  expect(shown).toContain('monday')
  expect(
    JSON.stringify(shownInput({ kind: 'arguments', values: [{ apiKey: 's3cret' }] })),
  ).not.toContain('s3cret')
  // The control: they are in what is sent.
  expect(JSON.stringify(request)).toContain('s3cret')
})

const table = (
  name: string,
  columns: object[],
  uniques: string[][],
  rows: string[][],
): KnownTable => ({ name: `public.${name}`, columns, uniques, rows }) as unknown as KnownTable
const people = table('people', [{ name: 'id' }], [['id']], [['1'], ['2'], ['3']])
const refers = { table: 'public.people', column: 'id' }
const members = table(
  'members',
  [{ name: 'person_id', refers }, { name: 'email' }],
  [['person_id'], ['email']],
  [],
)

test('a key is varied by keys of rows that are there, another value by fresh ones of its form', () => {
  const input: HttpInput = {
    ...request,
    path: '/',
    headers: [],
    body: '{"person":1,"email":"a@b.c","x":9}',
  }
  const bound = [
    { table: 'members', column: 'person_id', value: '1', inserted: true },
    { table: 'members', column: 'email', value: 'a@b.c', inserted: true },
  ]
  const variations = variationsOf(fieldsOf(input), bound, [people, members])
  expect(variations.map(({ path }) => path)).toEqual(['body.person', 'body.email'])
  const bodies = variations.map((one) => [1, 2, 3].map((n) => one.input(n)))
  expect(bodies[0]?.map((one) => one && bodyOf(one))).toMatchObject([
    { person: 2 },
    { person: 3 },
    undefined,
  ])
  expect(bodyOf(bodies[1]?.[0])).toMatchObject({
    person: 1,
    email: expect.stringMatching(/^ah\d+@b\.c$/),
  })
})

test.each([
  ['2026-01-31', ['2026-02-01', '2026-02-02']],
  ['2026-12-31T10:00:00.000Z', ['2027-01-01T10:00:00.000Z', '2027-01-02T10:00:00.000Z']],
  ['23:59', ['00:00', '00:01']],
  ['09:30:15', ['09:31:15', '09:32:15']],
  // The control: neither a day nor a time.
  ['2026-99-99', ['2026-99-997001', '2026-99-997002']],
  ['room 9:30', ['room 9:307001', 'room 9:307002']],
])('%s is varied to what its column can hold', (value, others) => {
  const input: HttpInput = { ...request, path: '/', headers: [], body: JSON.stringify({ value }) }
  const bound = [{ table: 'bookings', column: 'value', value, inserted: true }]
  const [variation] = variationsOf(fieldsOf(input), bound, [])
  const bodies = [1, 2].map((n) => variation?.input(n)).map((one) => one && bodyOf(one))
  expect(bodies).toEqual(others.map((other) => ({ value: other })))
})
