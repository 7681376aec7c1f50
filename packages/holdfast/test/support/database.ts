import { createDatabase, databaseOf, urlWithDatabase } from '@holdfast/testkit'
import { inject } from 'vitest'
import { isHostile, setAgainst } from './hostile-database.ts'

export interface TestDatabase {
  /** What the code under test connects to: direct, or through PgBouncer, by project. */
  readonly url: string
  /** Always direct: for observers, and for what a pooler cannot do. */
  readonly directUrl: string
  /** Whether `url` leads through PgBouncer in transaction mode. */
  readonly throughPooler: boolean
}

/**
 * A fresh database, empty or with our schema installed. Call it once per test file: advisory locks are per
 * database, so files that run at the same time on the shared server do not get in each other's way.
 */
export async function testDatabase(
  contents: 'empty' | 'installed' = 'empty',
): Promise<TestDatabase> {
  const template = inject(contents === 'empty' ? 'emptyDatabase' : 'installedDatabase')
  const directUrl = await createDatabase(inject('postgresUrl'), 'test', template)
  if (isHostile) await setAgainst(directUrl)
  const throughPooler = inject('throughPooler')
  const database = databaseOf(directUrl)
  const url = throughPooler ? urlWithDatabase(inject('pgbouncerUrl'), database) : directUrl
  return { url, directUrl, throughPooler }
}
