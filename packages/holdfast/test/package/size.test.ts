/** How much of the library a bundle carries, minified: what nobody uses must stay out. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { entriesOf, packageRoot, readManifest } from '../../../../scripts/package/entries.ts'

/**
 * In kB of 1,000 bytes; a third of that compressed. About 29 of each are the texts of the errors, and the SQL is in
 * two of them. Raise one only together with the reason.
 */
const budgets: Readonly<Record<string, number>> = {
  holdfast: 376,
  'holdfast/claims': 134,
  'holdfast/credits': 61,
  'holdfast/http': 52,
  'holdfast/leases': 78,
  'holdfast/ledger': 87,
  'holdfast/locks': 107,
  'holdfast/mysql': 283,
  'holdfast/observe': 168,
  'holdfast/once': 91,
  'holdfast/quota': 64,
  'holdfast/rows': 108,
  'holdfast/schedule': 90,
  'holdfast/sqlite': 211,
  'holdfast/shards': 95,
  'holdfast/stock': 63,
  'holdfast/tx': 67,
  'holdfast/schema': 512,
  'holdfast/health': 607,
  'holdfast/errors': 48,
  'holdfast/drivers/pg': 79,
  'holdfast/drivers/postgres-js': 73,
  'holdfast/drivers/prisma': 70,
  'holdfast/drivers/drizzle': 77,
  'holdfast/drivers/kysely': 70,
  'holdfast/drivers/typeorm': 71,
  'holdfast/drivers/knex': 70,
  'holdfast/drivers/mikro-orm': 72,
  'holdfast/drivers/sequelize': 70,
  'holdfast/drivers/mysql2': 69,
  'holdfast/drivers/mariadb': 67,
  'holdfast/drivers/kysely-mysql': 72,
  'holdfast/drivers/drizzle-mysql': 70,
  'holdfast/drivers/typeorm-mysql': 70,
  'holdfast/drivers/node-sqlite': 59,
  'holdfast/drivers/better-sqlite3': 59,
  'holdfast/drivers/kysely-sqlite': 60,
  'holdfast/drivers/drizzle-sqlite': 60,
  'holdfast/driver-kit': 69,
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
    ['a lock on pg', "export { createLocks, lockKey } from 'holdfast/locks'", 131],
    ['credits on pg', "export { createCredits } from 'holdfast/credits'", 93],
    ['everything on pg', "export { createHoldfast, lockKey } from 'holdfast'", 391],
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
