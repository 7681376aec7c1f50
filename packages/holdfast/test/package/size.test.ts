/** How much of the library a bundle carries, minified: what nobody uses must stay out. */
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { entriesOf, packageRoot, readManifest } from '../../../../scripts/package/entries.ts'

/**
 * In kB of 1,000 bytes; a third of that compressed. About 27 of each are the texts of the errors, and the SQL is in
 * two of them. Raise one only together with the reason.
 */
const budgets: Readonly<Record<string, number>> = {
  holdfast: 371,
  'holdfast/claims': 122,
  'holdfast/credits': 56,
  'holdfast/http': 44,
  'holdfast/leases': 69,
  'holdfast/ledger': 83,
  'holdfast/locks': 99,
  'holdfast/observe': 161,
  'holdfast/once': 81,
  'holdfast/quota': 60,
  'holdfast/rows': 98,
  'holdfast/schedule': 81,
  'holdfast/shards': 87,
  'holdfast/stock': 59,
  'holdfast/tx': 57,
  'holdfast/schema': 512,
  'holdfast/health': 607,
  'holdfast/errors': 42,
  'holdfast/drivers/pg': 70,
  'holdfast/drivers/postgres-js': 64,
  'holdfast/drivers/prisma': 61,
  'holdfast/drivers/drizzle': 67,
  'holdfast/drivers/kysely': 60,
  'holdfast/drivers/typeorm': 61,
  'holdfast/drivers/knex': 60,
  'holdfast/drivers/mikro-orm': 61,
  'holdfast/drivers/sequelize': 59,
  'holdfast/driver-kit': 59,
}

async function sizeOf(code: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: fileURLToPath(packageRoot('holdfast')) },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    external: ['croner'],
    // Ours leads to the sources.
    tsconfigRaw: {},
    write: false,
    logLevel: 'silent',
  })
  return outputFiles.reduce((sum, { contents }) => sum + contents.length, 0) / 1_000
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
    ['a lock on pg', "export { createLocks, lockKey } from 'holdfast/locks'", 122],
    ['credits on pg', "export { createCredits } from 'holdfast/credits'", 85],
    ['everything on pg', "export { createHoldfast, lockKey } from 'holdfast'", 386],
  ])('%s is within its budget', async (_, code, budget) => {
    const size = await sizeOf(`${code}\nexport { fromPg } from 'holdfast/drivers/pg'`)
    expect(size).toBeLessThan(budget)
  })
})
