/** Databases that a demo makes on the server of DATABASE_URL, and drops again. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'

/** One connection for one piece of work. */
export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** A new, empty database. It is dropped when the body ends. */
export async function withDatabase<T>(body: (url: string) => Promise<T>): Promise<T> {
  const server = process.env['DATABASE_URL']
  if (server === undefined) {
    throw new Error('DATABASE_URL is not set. The demo creates its databases on that server.')
  }
  const name = `demo_${randomBytes(5).toString('hex')}`
  const url = new URL(server)
  url.pathname = `/${name}`
  await withClient(server, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE template0`))
  try {
    return await body(url.href)
  } finally {
    await withClient(server, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`))
  }
}
