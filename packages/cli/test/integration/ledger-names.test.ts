/** Books, times and scopes that were mistyped are told, and nothing is written for them. */
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { type Result, runCommand } from '../support/run-command.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await runCommand(['migrate'], { DATABASE_URL: url })
})

const ledger = async (...args: string[]): Promise<Result> =>
  await runCommand(['ledger', ...args], { DATABASE_URL: url })

const daily = ['redeclare', 'api-calls', '--as', 'quota', '--per', 'day']

test('redeclare of a book that nobody knows declares none, unless it is to be new', async () => {
  for (const more of [[], ['--yes']]) {
    expect(await ledger(...daily, ...more)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/There is no book of this name\.\n.*add --new/),
    })
  }
  expect((await ledger('books')).out).toBe('No book was used yet.\n')
  expect((await ledger(...daily, '--new')).code).toBe(3)
  expect((await ledger('books')).out).toBe('No book was used yet.\n')
  expect(await ledger(...daily, '--new', '--yes')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^It was declared as: nothing yet\nIt is now: quota/),
  })
  const typo = await ledger('redeclare', 'api-clals', '--as', 'credits', '--yes', '--json')
  expect(JSON.parse(typo.err)).toMatchObject({
    error: { code: 'NOT_FOUND', message: expect.stringContaining('Did you mean api-calls?') },
  })
  expect((await ledger('books', '--json')).out).not.toContain('api-clals')
})

test('what a book was is told as what it was, once it is something else', async () => {
  await ledger(...daily, '--new', '--yes')
  const credits = ['redeclare', 'api-calls', '--as', 'credits']
  expect((await ledger(...credits)).out).toMatch(
    /^It is declared as: quota.*\nIt would be: credits/,
  )
  expect((await ledger(...credits, '--yes')).out).toMatch(
    /^It was declared as: quota.*\nIt is now: credits/,
  )
})

test.each(['2025-01-01', '2026-01-01'])('usage until %s, from 2026, is refused', async (to) => {
  const turned = await ledger('usage', 'api-calls', '--from', '2026-01-01', '--to', to)
  expect(turned).toMatchObject({ code: 2, err: expect.stringContaining('before --to') })
})
