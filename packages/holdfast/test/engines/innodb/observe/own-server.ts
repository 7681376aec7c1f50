import {
  innodbBinaries,
  type InnodbServer,
  type InnodbServerName,
  innodbServersOfRun,
  startInnodb,
} from '@holdfast/testkit'
import { createPool, type Pool } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { fromMysql2 } from '../../../../src/drivers/mysql2.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'

/** A server that nobody else looks at: MariaDB makes its lock views anew only a tenth of a second after somebody has. */
export interface OwnServer {
  readonly name: InnodbServerName
  readonly isMariadb: boolean
  server(): InnodbServer
  /** Of an empty database. */
  url(): string
  /** A driver over a pool of its own, which ends with the test; as another account if it is named. */
  driver(account?: string): InnodbDriver<unknown>
  /** Ends with the test. In the empty database unless another one, or none, is named. */
  open(as?: string | { readonly database: string }): Promise<InnodbSession>
}

/** Registers the same tests on each server of this run. */
export function eachOwnServer(
  body: (place: OwnServer) => void,
  settings: Readonly<Record<string, string>> = {},
): void {
  for (const name of innodbServersOfRun) {
    describe.skipIf(innodbBinaries(name) === undefined)(`${name}`, () => {
      let running: InnodbServer | undefined
      let database = ''
      const opened: (() => Promise<void>)[] = []
      afterEach(async () => {
        await Promise.all(opened.splice(0).map((end) => end()))
      })
      const server = (): InnodbServer => running as InnodbServer
      beforeAll(async () => {
        running = await startInnodb(name, settings)
        database = await running.createDatabase()
      })
      afterAll(async () => {
        await running?.stop()
      })
      const urlOf = (account: string | undefined): string => {
        const url = new URL(database)
        if (account !== undefined) url.username = account
        return url.href
      }
      body({
        name,
        isMariadb: name.startsWith('mariadb'),
        server,
        url: () => database,
        driver(account) {
          const pool: Pool = createPool({
            uri: urlOf(account),
            connectionLimit: 10,
            connectAttributes: { program_name: 'looking' },
          })
          opened.push(() => pool.end())
          return fromMysql2(pool) as unknown as InnodbDriver<unknown>
        },
        async open(as) {
          const url = new URL(urlOf(typeof as === 'string' ? as : undefined))
          if (typeof as === 'object') url.pathname = `/${as.database}`
          const session = await InnodbSession.open(url.href)
          opened.push(() => session[Symbol.asyncDispose]())
          return session
        },
      })
    })
  }
}
