import {
  innodbBinaries,
  type InnodbServer,
  innodbServerNames,
  startInnodb,
} from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InnodbSession } from './innodb-session.ts'

/** What a test gets: one of the servers, an empty database, and sessions in it that end with the test. */
export interface InnodbPlace {
  /** Only inside tests and hooks: the server starts when they run. */
  server(): InnodbServer
  open(): Promise<InnodbSession>
}

/** Also what a server is by its own settings: from 11.6.2 on MariaDB refuses where it used to lose updates. */
export interface InnodbTraits {
  readonly isMariadb: boolean
  readonly refusesOldSnapshots: boolean
}

/**
 * Registers the same tests on MariaDB 10.11, MariaDB 11 and MySQL 9: what we rely on must be true of each. A brief run
 * has the first only; one that is not installed is skipped, and says so.
 */
export function onEveryServer(body: (place: InnodbPlace, traits: InnodbTraits) => void): void {
  const isBrief = process.env['HOLDFAST_BRIEF'] === '1'
  for (const name of isBrief ? innodbServerNames.slice(0, 1) : innodbServerNames) {
    const isThere = innodbBinaries(name) !== undefined
    if (!isThere) process.stderr.write(`!!! ${name} is not installed, so its tests do not run\n`)
    describe.skipIf(!isThere)(`${name}`, () => {
      let running: InnodbServer | undefined
      let database = ''
      const server = (): InnodbServer => {
        if (running === undefined) throw new Error('the server is started by beforeAll')
        return running
      }
      beforeAll(async () => {
        running = await startInnodb(name)
        database = await running.createDatabase()
      })
      afterAll(async () => {
        await running?.stop()
      })
      test('is the server that the matrix says', async () => {
        await using session = await InnodbSession.open(database)
        const version = String(await session.value('SELECT version()'))
        const major = name.split('-')[1] as string
        expect(version.startsWith(`${major}.`)).toBe(true)
        expect(version.includes('MariaDB')).toBe(name.startsWith('mariadb'))
      })
      const isMariadb = name.startsWith('mariadb')
      body(
        { server, open: async () => await InnodbSession.open(database) },
        { isMariadb, refusesOldSnapshots: name === 'mariadb-11' },
      )
    })
  }
}
