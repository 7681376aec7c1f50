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

/** The name of the database that a URL leads to. */
export function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1))
}

/**
 * Creates a database with a name of its own on the server of `url` and gives its URL: an empty one, or a copy
 * of another. Advisory locks and NOTIFY are per database, so tests that share a server but not a database
 * cannot see each other.
 */
export async function createDatabase(
  url: string,
  prefix = 'test',
  // Has no sessions ever, so copies of it can be made at the same time.
  template = 'template0',
): Promise<string> {
  const name = `${prefix}_${randomBytes(5).toString('hex')}`
  await withClient(url, async (client) => {
    const [made, from] = [client.escapeIdentifier(name), client.escapeIdentifier(template)]
    await client.query(`CREATE DATABASE ${made} TEMPLATE ${from}`)
  })
  return urlWithDatabase(url, name)
}

/** Makes the database of `url` one to be copied: nobody can connect to it any more. Answers its name. */
export async function closeForCopies(url: string): Promise<string> {
  const name = databaseOf(url)
  await withClient(urlWithDatabase(url, 'postgres'), async (client) => {
    await client.query(
      `ALTER DATABASE ${client.escapeIdentifier(name)} WITH ALLOW_CONNECTIONS false`,
    )
  })
  return name
}
