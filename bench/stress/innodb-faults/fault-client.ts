import * as mariadb from 'mariadb'
import { createPool } from 'mysql2/promise'
import { fromMariadb } from '../../../packages/holdfast/src/drivers/mariadb.ts'
import { fromMysql2 } from '../../../packages/holdfast/src/drivers/mysql2.ts'
import type { InnodbDriver } from '../../../packages/holdfast/src/mysql.ts'

/** A client of MariaDB and MySQL, as far as faults need it. */
export interface FaultClient {
  readonly driver: InnodbDriver<unknown>
  send(tx: unknown, text: string): Promise<unknown>
  root(text: string): Promise<unknown>
  end(): Promise<void>
}

interface Sender {
  query(text: string): Promise<unknown>
}

export const faultClients = ['mysql2', 'mariadb'] as const
export type FaultClientName = (typeof faultClients)[number]

/** One lock for all: whoever has it after a process was killed comes after all that the process had done. */
export const faultKey = ['faults', 'all'] as const

export const faultTable =
  'CREATE TABLE written (id VARCHAR(60) NOT NULL, attempt INT NOT NULL, part INT NOT NULL, PRIMARY KEY (id, attempt, part)) ENGINE=InnoDB'

/** One of two parts, which belong together. */
export function insertOf(id: string, attempt: number, part: number): string {
  return `INSERT INTO written VALUES ('${id}', ${attempt}, ${part})`
}

export function openFaultClient(name: FaultClientName, url: string, size: number): FaultClient {
  const send = async (tx: unknown, text: string): Promise<unknown> =>
    await (tx as Sender).query(text)
  if (name === 'mysql2') {
    const pool = createPool({ uri: url, connectionLimit: size })
    pool.pool.on('connection', (each) => void each.on('error', () => undefined))
    const driver = fromMysql2(pool) as unknown as InnodbDriver<unknown>
    return { driver, send, root: (text) => pool.query(text), end: () => pool.end() }
  }
  const { hostname: host, port, username: user, pathname } = new URL(url)
  const pool = mariadb.createPool({
    host,
    port: Number(port),
    user,
    database: pathname.slice(1),
    connectionLimit: size,
    acquireTimeout: 5_000,
    initializationTimeout: 5_000,
    // MySQL's default method asks for the server's key where there is no TLS.
    allowPublicKeyRetrieval: true,
  })
  const driver = fromMariadb(pool) as unknown as InnodbDriver<unknown>
  return { driver, send, root: (text) => pool.query(text), end: () => pool.end() }
}
