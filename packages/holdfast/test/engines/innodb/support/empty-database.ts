import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'

/** A database for the tests of one `describe`. Its address is known inside of tests and hooks only. */
export function emptyDatabase(serverUrl: string): { url(): string } {
  const database = `test_${randomBytes(5).toString('hex')}`
  beforeAll(async () => {
    await using session = await InnodbSession.open(serverUrl)
    await session.rows(`CREATE DATABASE ${database}`)
  })
  afterAll(async () => {
    await using session = await InnodbSession.open(serverUrl)
    await session.rows(`DROP DATABASE ${database}`)
  })
  return { url: () => `${serverUrl}${database}` }
}
