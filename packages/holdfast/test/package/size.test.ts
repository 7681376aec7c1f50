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
  holdfast: 362,
  'holdfast/claims': 117,
  'holdfast/credits': 53,
  'holdfast/leases': 63,
  'holdfast/ledger': 80,
  'holdfast/locks': 93,
  'holdfast/observe': 159,
  'holdfast/once': 75,
  'holdfast/quota': 57,
  'holdfast/rows': 92,
  'holdfast/schedule': 75,
  'holdfast/shards': 82,
  'holdfast/stock': 56,
  'holdfast/tx': 51,
  'holdfast/schema': 520,
  'holdfast/health': 617,
  'holdfast/errors': 38,
  'holdfast/drivers/pg': 64,
  'holdfast/drivers/postgres-js': 58,
  'holdfast/drivers/prisma': 55,
  'holdfast/drivers/drizzle': 63,
  'holdfast/drivers/kysely': 54,
  'holdfast/drivers/typeorm': 57,
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
    ['a lock on pg', "export { createLocks, lockKey } from 'holdfast/locks'", 115],
    ['credits on pg', "export { createCredits } from 'holdfast/credits'", 79],
    ['everything on pg', "export { createHoldfast, lockKey } from 'holdfast'", 380],
  ])('%s is within its budget', async (_, code, budget) => {
    const size = await sizeOf(`${code}\nexport { fromPg } from 'holdfast/drivers/pg'`)
    expect(size).toBeLessThan(budget)
  })
})
