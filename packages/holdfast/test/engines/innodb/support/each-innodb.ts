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

/** Registers the same tests for each server of this run and each client. */
export function eachInnodb(body: (place: InnodbPlace) => void): void {
  for (const { name: server, url: serverUrl } of inject('innodbServers')) {
    for (const client of clientNames) {
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
