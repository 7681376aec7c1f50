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
