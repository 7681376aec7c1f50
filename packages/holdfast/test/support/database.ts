import { createDatabase, urlWithDatabase } from '@holdfast/testkit'
import { inject } from 'vitest'

export interface TestDatabase {
  /** What the code under test connects to: direct, or through PgBouncer, by project. */
  readonly url: string
  /** Always direct: for observers, and for what a pooler cannot do. */
  readonly directUrl: string
  /** Whether `url` leads through PgBouncer in transaction mode. */
  readonly throughPooler: boolean
}

/**
 * A fresh, empty database. Call it once per test file: advisory locks are per database, so files
 * that run at the same time on the shared server do not get in each other's way.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const directUrl = await createDatabase(inject('postgresUrl'))
  const throughPooler = inject('throughPooler')
  const database = decodeURIComponent(new URL(directUrl).pathname.slice(1))
  const url = throughPooler ? urlWithDatabase(inject('pgbouncerUrl'), database) : directUrl
  return { url, directUrl, throughPooler }
}
