import { describe, inject } from 'vitest'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { emptyDatabase } from './empty-database.ts'
import { type ClientName, clientNames, type InnodbClient, openClient } from './innodb-clients.ts'

/** One server with an empty database, and clients in it. */
export interface InnodbPlace {
  readonly server: string
  readonly client: ClientName
  /** Only inside tests and hooks. */
  url(): string
  /** A new pool; ends with the test: `await using`. */
  pool(size?: number): InnodbClient
  /** A connection that looks on. */
  session(): Promise<InnodbSession>
}

/** What is under test: how a client is driven, or what our statements do, whoever sends them. */
type About = 'every client' | 'the server'

/** The clients that the others are built on, one of each. */
const roots = ['mysql2', 'mariadb'] as const satisfies readonly ClientName[]

/**
 * Registers the same tests for each server of this run and each client. Of what is about the server a brief run has the
 * clients that the others are built on.
 */
export function eachInnodb(
  body: (place: InnodbPlace) => void,
  about: About = 'every client',
): void {
  const isBrief = process.env['HOLDFAST_BRIEF'] === '1'
  for (const { name: server, url: serverUrl } of inject('innodbServers')) {
    for (const client of isBrief && about === 'the server' ? roots : clientNames) {
      describe(`${server}, ${client}`, () => {
        const { url } = emptyDatabase(serverUrl)
        body({
          server,
          client,
          url,
          pool: (size) => openClient(client, url(), size),
          session: async () => await InnodbSession.open(url()),
        })
      })
    }
  }
}
