import { ends, type PostgresServer, postgresVersions, startPostgres } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Session } from './session.ts'

/** What a test gets: a server of one version, and sessions on it that end with the test. */
export interface Place {
  /** Only inside tests and hooks: the server starts when they run. */
  server(): PostgresServer
  open(): Promise<Session>
}

/**
 * Registers the same tests on PostgreSQL 15, 16, 17 and 18, whatever version the rest of a run is about: what we rely on must
 * be true of every version we claim. A brief run tries the oldest and the newest.
 */
export function onEveryVersion(
  body: (place: Place) => void,
  settings: Readonly<Record<string, string>> = {},
): void {
  describe.each(ends(postgresVersions))('PostgreSQL %i', (version) => {
    let running: PostgresServer | undefined
    const server = (): PostgresServer => {
      if (running === undefined) throw new Error('the server is started by beforeAll')
      return running
    }

    beforeAll(async () => {
      // Deadlock detection is not under test here; a short timer would only add noise.
      running = await startPostgres({
        version,
        settings: { deadlock_timeout: '10s', ...settings },
      })
    })
    afterAll(async () => {
      await running?.stop('immediate')
    })

    test('is the version the matrix says', async () => {
      await using session = await Session.open(server().url())
      const number = Number(await session.value(`SELECT current_setting('server_version_num')`))
      expect(Math.floor(number / 10_000)).toBe(version)
    })

    body({ server, open: async () => await Session.open(server().url()) })
  })
}
