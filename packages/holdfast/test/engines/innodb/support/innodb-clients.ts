import { createPool as mariadbPool, type Pool as MariadbPool } from 'mariadb'
import { createPool as mysql2Pool, type Pool as Mysql2Pool } from 'mysql2/promise'
import type { Row } from '../../../../src/core/driver.ts'
import { fromMariadb } from '../../../../src/drivers/mariadb.ts'
import { fromMysql2 } from '../../../../src/drivers/mysql2.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { openDrizzle } from './drizzle-client.ts'
import { openKysely } from './kysely-client.ts'
import { openTypeOrm } from './typeorm-client.ts'

/** What both clients' connections have in common, as far as bodies of tests go. */
export interface Handle {
  query(text: string): Promise<unknown>
  beginTransaction(): Promise<void>
  commit(): Promise<void>
  rollback(): Promise<void>
  release(): void | Promise<void>
  destroy(): void
}

/** A pool of one client with the driver over it. */
export interface InnodbClient extends AsyncDisposable {
  readonly driver: InnodbDriver<Handle>
  /** A driver over the same pool whose connections are not what they are. */
  weakened(by: (handle: Handle) => Handle): InnodbDriver<Handle>
  connect(): Promise<Handle>
  rows(handle: Handle, text: string): Promise<readonly Row[]>
}

const clients = {
  mysql2: ofMysql2,
  mariadb: ofMariadb,
  kysely: openKysely,
  drizzle: openDrizzle,
  typeorm: openTypeOrm('mysql'),
} satisfies Record<string, (uri: string, size: number) => InnodbClient>

export type ClientName = keyof typeof clients
export const clientNames = Object.keys(clients) as readonly ClientName[]

/** Opens a pool on a database. */
export function openClient(name: ClientName, uri: string, size = 10): InnodbClient {
  return clients[name](uri, size)
}

function ofMysql2(uri: string, connectionLimit: number): InnodbClient {
  const pool: Mysql2Pool = mysql2Pool({ uri, connectionLimit })
  return {
    driver: fromMysql2(pool) as unknown as InnodbDriver<Handle>,
    weakened: (by) => {
      const given = async (): Promise<Handle> =>
        by((await pool.getConnection()) as unknown as Handle)
      return fromMysql2({ getConnection: given } as never) as unknown as InnodbDriver<Handle>
    },
    connect: async () => (await pool.getConnection()) as unknown as Handle,
    async rows(handle, text) {
      const [rows] = (await handle.query(text)) as [readonly Row[]]
      return rows
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

function ofMariadb(uri: string, connectionLimit: number): InnodbClient {
  const { hostname: host, port, username: user, pathname } = new URL(uri)
  const pool: MariadbPool = mariadbPool({
    host,
    port: Number(port),
    user,
    database: pathname.slice(1),
    connectionLimit,
    minimumIdle: 0,
    // MySQL's default method asks for the server's key where there is no TLS.
    allowPublicKeyRetrieval: true,
  })
  return {
    driver: fromMariadb(pool) as unknown as InnodbDriver<Handle>,
    weakened: (by) => {
      const given = async (): Promise<Handle> =>
        by((await pool.getConnection()) as unknown as Handle)
      const totalConnections = (): number => pool.totalConnections()
      const wrapped = { getConnection: given, totalConnections }
      return fromMariadb(wrapped as never) as unknown as InnodbDriver<Handle>
    },
    connect: async () => (await pool.getConnection()) as unknown as Handle,
    rows: async (handle, text) => (await handle.query(text)) as readonly Row[],
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
