import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'

const connectMs = 3_000
const goodbyeMs = 500

/**
 * One connection for one piece of work on a server that may be about to break: no wait in it is without end,
 * whatever the server does.
 */
export async function ask<T>(
  url: string,
  work: (client: Client) => Promise<T>,
  limitMs: number = 10_000,
): Promise<T> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    query_timeout: limitMs,
    application_name: 'nemesis',
  })
  // A connection that breaks fails the statement that is under way, or the next one.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    // Who stands still does not say goodbye.
    await Promise.race([client.end().catch(() => undefined), pause(goodbyeMs)])
    const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
    connection.stream.destroy()
  }
}

/** The rows of one statement. */
export async function rowsOf<Row extends object>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return await ask(url, async (client) => (await client.query<Row>(text, values)).rows)
}
