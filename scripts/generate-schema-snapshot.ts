/**
 * Writes packages/holdfast/sql/catalogue.json: what a fresh installation of the SQL files looks like
 * on every supported version of PostgreSQL. `holdfast doctor` compares databases with it.
 * Run: npm run schema:snapshot
 */
import { writeFileSync } from 'node:fs'
import { postgresVersions, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { fromPg } from '../packages/holdfast/src/drivers/pg.ts'
import { describeSchema, type FoundObjects } from '../packages/holdfast/src/schema/catalogue.ts'
import { migrate } from '../packages/holdfast/src/schema/index.ts'
import { ownFiles } from '../packages/holdfast/src/schema/schema-files.ts'
import { commonCatalogue, filesDigest } from './common-catalogue.ts'

const file = new URL('../packages/holdfast/sql/catalogue.json', import.meta.url)

async function freshInstallation(
  version: (typeof postgresVersions)[number],
): Promise<FoundObjects> {
  await using server = await startPostgres({ version })
  const pool = new pg.Pool({ connectionString: server.url(), max: 1 })
  // The server may be faster to stop than the connection is to close.
  pool.on('error', () => undefined)
  try {
    const driver = fromPg(pool)
    const { schema } = await migrate(driver)
    return await driver.transaction((transaction) => describeSchema(transaction, schema), {
      scopes: [],
    })
  } finally {
    await pool.end()
  }
}

const { versions, objects, byVersion } = commonCatalogue(
  await Promise.all(postgresVersions.map(freshInstallation)),
)
// A line per object: changes are read in reviews.
const lines = (list: readonly object[]): string =>
  list.length === 0 ? '[]' : `[\n${list.map((object) => JSON.stringify(object)).join(',\n')}\n]`
const own = Object.entries(byVersion).map(([major, list]) => `"${major}": ${lines(list)}`)
const parts = [
  `"files": "${filesDigest(ownFiles())}"`,
  `"versions": ${JSON.stringify(versions)}`,
  `"objects": ${lines(objects)}`,
  `"byVersion": {\n${own.join(',\n')}\n}`,
]
writeFileSync(file, `{\n${parts.join(',\n')}\n}\n`)
