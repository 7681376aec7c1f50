/**
 * Two guards of one key on PGlite, by real adapters, which are installed into a folder of its own: both must be refused
 * before a body runs. `npm run check:pglite`.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fromDrizzle } from '../packages/holdfast/src/drivers/drizzle.ts'
import { fromKysely } from '../packages/holdfast/src/drivers/kysely.ts'
import {
  createHoldfast,
  type Driver,
  isHoldfastError,
  lockKey,
} from '../packages/holdfast/src/index.ts'

/** As far as they are used here: they are not installed when this is checked. */
interface Adapters {
  readonly KyselyPGlite: { create(): Promise<{ readonly dialect: unknown }> }
  readonly Kysely: new (config: { readonly dialect: unknown }) => never
  readonly PGlite: new () => object
  readonly drizzle: (client: object) => never
  readonly sql: never
}

const packages = ['@electric-sql/pglite', 'drizzle-orm', 'kysely@0.27', 'kysely-pglite']
const adapters = `
  export { KyselyPGlite } from 'kysely-pglite'
  export { Kysely } from 'kysely'
  export { PGlite } from '@electric-sql/pglite'
  export { drizzle } from 'drizzle-orm/pglite'
  export { sql } from 'drizzle-orm'`
const folder = mkdtempSync(join(tmpdir(), 'holdfast-pglite-'))

async function refusedBy(driver: Driver<unknown>): Promise<string> {
  const hf = createHoldfast(driver)
  let bodies = 0
  const body = async (): Promise<void> => {
    bodies += 1
  }
  const guards = [1, 2].map(() => hf.guard(lockKey('seat', 1), body, { queue: false }))
  const codes = (await Promise.allSettled(guards)).map((each) =>
    each.status === 'rejected' && isHoldfastError(each.reason) ? each.reason.code : each.status,
  )
  return `${bodies} bodies, ${codes.join(', ')}`
}

try {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  execFileSync('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: folder })
  const entry = join(folder, 'adapters.mjs')
  writeFileSync(entry, adapters)
  const { KyselyPGlite, Kysely, PGlite, drizzle, sql } = (await import(
    pathToFileURL(entry).href
  )) as Adapters
  const { dialect } = await KyselyPGlite.create()
  const told = {
    'kysely-pglite': await refusedBy(fromKysely(new Kysely({ dialect })) as Driver<unknown>),
    'drizzle-orm/pglite': await refusedBy(
      fromDrizzle(drizzle(new PGlite()), sql) as Driver<unknown>,
    ),
  }
  const wanted = '0 bodies, ENGINE_ONE_SESSION, ENGINE_ONE_SESSION'
  for (const [adapter, answer] of Object.entries(told)) {
    console.log(`${adapter}: ${answer}`)
    if (answer !== wanted) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true })
}
process.exit()
