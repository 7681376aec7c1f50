import { randomBytes } from 'node:crypto'
import { Client } from 'pg'

/** One connection for one piece of work; closed whatever happens. */
export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  // A connection that breaks fails the statement that is under way, or the next one; the event says no more.
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The same server, another database. */
export function urlWithDatabase(url: string, database: string): string {
  const target = new URL(url)
  target.pathname = `/${encodeURIComponent(database)}`
  return target.href
}

/**
 * Creates an empty database with a name of its own on the server of `url` and gives its URL.
 * Advisory locks and NOTIFY are per database, so tests that share a server but not a database
 * cannot see each other.
 */
export async function createDatabase(url: string, prefix = 'test'): Promise<string> {
  const name = `${prefix}_${randomBytes(5).toString('hex')}`
  await withClient(url, async (client) => {
    // template0 has no sessions ever, so copies of it can be made at the same time.
    await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)} TEMPLATE template0`)
  })
  return urlWithDatabase(url, name)
}
