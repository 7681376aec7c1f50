/** How much of the library a bundle carries, minified: what nobody uses must stay out. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { entriesOf, packageRoot, readManifest } from '../../../../scripts/package/entries.ts'

/**
 * In kB of 1,000 bytes; a third of that compressed. About 29 of each are the texts of the errors, and the SQL is in
 * two of them. Raise one only together with the reason. Last: wrong clients of MariaDB, MySQL and SQLite are refused by
 * name, the ledger has short ways for plain operations, and `holdfast` has rate limits.
 */
const budgets: Readonly<Record<string, number>> = {
  holdfast: 404,
  'holdfast/claims': 137,
  'holdfast/credits': 62,
  'holdfast/http': 52,
  'holdfast/leases': 82,
  'holdfast/ledger': 88,
  'holdfast/locks': 111,
  'holdfast/mysql': 290,
  'holdfast/observe': 172,
  'holdfast/once': 95,
  'holdfast/quota': 66,
  'holdfast/rate-limit': 85,
  'holdfast/rows': 112,
  'holdfast/schedule': 94,
  'holdfast/sqlite': 217,
  'holdfast/shards': 98,
  'holdfast/stock': 64,
  'holdfast/tx': 71,
  'holdfast/schema': 534,
  'holdfast/health': 629,
  'holdfast/errors': 48,
  'holdfast/drivers/pg': 86,
  'holdfast/drivers/postgres-js': 76,
  'holdfast/drivers/prisma': 76,
  'holdfast/drivers/drizzle': 82,
  'holdfast/drivers/kysely': 76,
  'holdfast/drivers/typeorm': 76,
  'holdfast/drivers/knex': 76,
  'holdfast/drivers/mikro-orm': 77,
  'holdfast/drivers/sequelize': 75,
  'holdfast/drivers/mysql2': 74,
  'holdfast/drivers/mariadb': 71,
  'holdfast/drivers/kysely-mysql': 77,
  'holdfast/drivers/drizzle-mysql': 75,
  'holdfast/drivers/typeorm-mysql': 75,
  'holdfast/drivers/node-sqlite': 61,
  'holdfast/drivers/better-sqlite3': 61,
  'holdfast/drivers/kysely-sqlite': 63,
  'holdfast/drivers/drizzle-sqlite': 63,
  'holdfast/driver-kit': 75,
}

async function sizeOf(code: string): Promise<number> {
  return (await bundleOf(code, ['croner'])).length / 1_000
}

async function bundleOf(code: string, external: string[]): Promise<Buffer> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: fileURLToPath(packageRoot('holdfast')) },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    external,
    // Ours leads to the sources.
    tsconfigRaw: {},
    write: false,
    logLevel: 'silent',
  })
  return Buffer.concat(outputFiles.map(({ contents }) => contents))
}

const entries = entriesOf(readManifest(packageRoot('holdfast'))).map(({ specifier }) => specifier)

describe('minified', () => {
  test('every entry has a budget', () => {
    expect(Object.keys(budgets).toSorted()).toEqual(entries.toSorted())
  })

  test.each(entries)('%s is within its budget', async (entry) => {
    const size = await sizeOf(`export * from '${entry}'`)
    expect(size).toBeLessThan(budgets[entry] ?? 0)
    // A budget far above the size would hold nothing.
    expect(size).toBeGreaterThan((budgets[entry] ?? 0) * 0.8)
  })

  test.each([
    ['a lock on pg', "export { createLocks, lockKey } from 'holdfast/locks'", 139],
    ['credits on pg', "export { createCredits } from 'holdfast/credits'", 101],
    ['everything on pg', "export { createHoldfast, lockKey } from 'holdfast'", 423],
  ])('%s is within its budget', async (_, code, budget) => {
    const size = await sizeOf(`${code}\nexport { fromPg } from 'holdfast/drivers/pg'`)
    expect(size).toBeLessThan(budget)
  })
})

/** What docs/bundlers.md says of whole bundles: with croner, and without the client. */
const documented: readonly (readonly [row: string, code: string])[] = [
  ['`createCredits` and `fromPg`', "export { createCredits } from 'holdfast/credits'"],
  ['`createLocks` and `fromPg`', "export { createLocks } from 'holdfast/locks'"],
  ['`createHoldfast` and `fromPg`', "export { createHoldfast } from 'holdfast'"],
  ['`migrate` and `fromPg`, with all SQL', "export { migrate } from 'holdfast/schema'"],
]

/** How far a number of the page may be off, as a part of it: what grows more has to be measured and written again. */
const tolerance = 0.03

describe('docs/bundlers.md', () => {
  const page = readFileSync(new URL('../../../../docs/bundlers.md', import.meta.url), 'utf8')
  test.each(documented)('%s', async (row, code) => {
    const [, ...told] =
      new RegExp(`^\\| ${row} \\| (\\d+) kB \\| (\\d+) kB \\|$`, 'm').exec(page) ?? []
    const bundle = await bundleOf(`${code}\nexport { fromPg } from 'holdfast/drivers/pg'`, ['pg'])
    const measured = [bundle, gzipSync(bundle, { level: 9 })].map(({ length }) => length / 1_000)
    const isNear = measured.map((size, at) => Math.abs(size - Number(told[at])) < size * tolerance)
    expect([measured, isNear]).toEqual([measured, [true, true]])
  })
})

/** Words that only one product reads. */
const words = {
  postgres: 'advisory_xact_lock',
  innodb: 'max_statement_time',
  sqlite: 'BEGIN IMMEDIATE',
}

test.each([
  ['holdfast/locks', 'holdfast/drivers/pg', 'postgres', 'innodb'],
  ['holdfast', 'holdfast/drivers/pg', 'postgres', 'innodb'],
  ['holdfast/mysql', 'holdfast/drivers/mysql2', 'innodb', 'postgres'],
  ['holdfast/sqlite', 'holdfast/drivers/node-sqlite', 'sqlite', 'postgres'],
] as const)(
  '%s with %s has the statements of %s and none of %s',
  async (room, driver, has, lacks) => {
    const text = Buffer.from(
      await bundleOf(`export * from '${room}'\nexport * as driver from '${driver}'`, ['croner']),
    ).toString()
    expect(text).toContain(words[has])
    expect(text).not.toContain(words[lacks])
  },
)
