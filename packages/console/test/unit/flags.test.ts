import { expect, test } from 'vitest'
import { wishOf } from '../../src/command/flags.ts'

const url = 'postgres://a/b'

test('a variable that is empty counts as not set', () => {
  const environment = { HOLDFAST_DATABASE_URL: '', DATABASE_URL: url, HOLDFAST_SCHEMA: '' }
  expect(wishOf([], environment)).toMatchObject({ databases: { main: url }, schema: undefined })
  expect(() => wishOf([], { HOLDFAST_DATABASE_URL: '' })).toThrow('A database is needed')
})

test.each(['schema', 'host', 'database-url', 'actions'])('an empty --%s is refused', (flag) => {
  expect(() => wishOf([`--${flag}`, ''], { DATABASE_URL: url })).toThrow(`--${flag} is empty.`)
})

test.each([
  'postgres://u:S3cr@tp4ss/9x@h/d',
  'postgres://u:p@ss?x@h/d',
  'postgres://u:p#x@h/d',
  'postgres://u:hunter2/x@h/d',
])('a URL of whose password a part would be the host is refused: %s', (wrong) => {
  for (const read of [
    () => wishOf([], { DATABASE_URL: wrong }),
    () => wishOf([`a=${wrong}`], {}),
  ]) {
    expect(read).toThrow(/cannot be read: in it, @ is %40/)
  }
})

test('control: percent-encoded, it is taken', () => {
  const fine = 'postgres://u:p%40ss%2F@/d?host=/tmp'
  expect(wishOf([], { DATABASE_URL: fine }).databases).toEqual({ main: fine })
})
