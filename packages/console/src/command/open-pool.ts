import type { Driver } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { isMysqlUrl } from './flags.ts'

/** A few connections to a database: two questions at once, and the lock tree. */
export interface OpenPool {
  readonly driver: Driver<unknown>
  /** Under which name its sessions show up on the server. No action touches them. */
  readonly application: string
  /** Connects once. */
  reach(): Promise<void>
  end(): Promise<void>
}

const application = 'holdfast-console'
const most = 3
const connectMs = 5_000
/** Every statement has a timeout of its own on the server. A server that is silent for so long is not there any more. */
const silentMs = 15_000

export async function openPool(url: string): Promise<OpenPool> {
  if (isMysqlUrl(url)) return await openMysqlPool(url)
  const pool = new pg.Pool({
    connectionString: url,
    max: most,
    application_name: application,
    connectionTimeoutMillis: connectMs,
    query_timeout: silentMs,
  })
  // A connection that breaks while idle; the next question will say so.
  pool.on('error', () => undefined)
  return {
    driver: fromPg(pool),
    application,
    reach: async () => (await pool.connect()).release(),
    end: () => pool.end(),
  }
}

/** The client is loaded only where it is used. */
async function openMysqlPool(url: string): Promise<OpenPool> {
  const [{ createPool }, { fromMysql2 }] = await Promise.all([
    import('mysql2'),
    import('holdfast/drivers/mysql2'),
  ])
  const pool = createPool({
    uri: url.replace(/^mariadb:/, 'mysql:'),
    connectionLimit: most,
    connectTimeout: connectMs,
    connectAttributes: { program_name: application },
  })
  pool.on('connection', (connection) => {
    const { stream } = connection as unknown as { readonly stream: Silenceable }
    stream.setTimeout(silentMs, () => {
      // Whoever waits for an answer is told; and nobody is given the connection any more.
      stream.destroy(Object.assign(new Error('the server is silent'), { code: 'ETIMEDOUT' }))
      connection.destroy()
    })
  })
  const promised = pool.promise()
  return {
    driver: fromMysql2(promised) as Driver<unknown>,
    application,
    reach: async () => (await promised.getConnection()).release(),
    end: () => promised.end(),
  }
}

/** A socket. Only the client knows when it asks, so that one that is not used ends as well; the pool opens another. */
interface Silenceable {
  setTimeout(ms: number, ended: () => void): unknown
  destroy(error: Error): unknown
}
