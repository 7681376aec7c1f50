import { describe, expect, test } from 'vitest'
import { askedRows } from '../../../../../scripts/matrix/asked-rows.ts'
import { clients } from '../../../../../scripts/matrix/versions.ts'

const asked = (...words: readonly string[]): string[] =>
  askedRows(words).map(
    ({ client, version, isListed }) => `${client.name} ${version}${isListed ? '' : ', not listed'}`,
  )

describe('rows of npm run test:matrix', () => {
  test('are all that are listed, unless some are asked for', () => {
    const every = clients.flatMap(({ name, versions }) => versions.map((each) => `${name} ${each}`))
    expect(asked()).toEqual(every)
    expect(asked('Kysely', 'knex')).toEqual(every.filter((row) => /^K(?:ysely|nex) /.test(row)))
  })

  test('may have a version that is not listed, and say so', () => {
    expect(asked('prisma@6.19.3')).toEqual(['Prisma 6.19.3, not listed'])
    expect(asked('drizzle@1.0.0-rc.5')).toEqual(['Drizzle 1.0.0-rc.5, not listed'])
    const [known] = clients.find(({ name }) => name === 'Knex')?.versions ?? []
    expect(asked(`knex@${known}`)).toEqual([`Knex ${known}`])
  })

  test('are found by the names of packages as well', () => {
    expect(asked('postgres@3.3.5', 'drizzle-orm@0.43.1', '@prisma/client@6.19.3')).toEqual([
      'postgres.js 3.3.5, not listed',
      'Drizzle 0.43.1, not listed',
      'Prisma 6.19.3, not listed',
    ])
  })

  test('are refused if nobody knows them, also beside others', () => {
    expect(() => asked('pg', 'oracle')).toThrow(/nothing is called oracle; there are pg, postgres/)
    expect(() => asked('pg@latest')).toThrow('latest is no version')
  })
})
