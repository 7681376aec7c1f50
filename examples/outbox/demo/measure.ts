import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { leaseMs } from '../src/settings.ts'
import { withClient } from './databases.ts'
import { type Relay, startRelay } from './start-relay.ts'
import { waitUntil } from './wait-until.ts'

export type Way = 'by hand' | 'holdfast'

/** What the database says afterwards. */
export interface Measured {
  readonly messages: number
  readonly delivered: number
  readonly deliveredTwice: number
  readonly centsTooMuch: number
}

const relays = 3
const schema = new URL('../schema.sql', import.meta.url)

/** Delivers all messages by three processes; in each round one is killed and one paused past its lease. */
export async function measure(
  databaseUrl: string,
  way: Way,
  { messages, rounds }: { readonly messages: number; readonly rounds: number },
  onRound: () => void,
): Promise<Measured> {
  const ddl = await readFile(schema, 'utf8')
  await withClient(databaseUrl, async (client) => {
    await client.query(ddl)
    await client.query('INSERT INTO orders SELECT g, 100 + g FROM generate_series(1, $1::int) g', [
      messages,
    ])
    await client.query('INSERT INTO outbox (order_id) SELECT id FROM orders ORDER BY id')
  })
  const start = (): Promise<Relay> => startRelay({ DATABASE_URL: databaseUrl, WAY: way })
  const running = await Promise.all(Array.from({ length: relays }, start))
  try {
    for (let round = 0; round < rounds; round += 1) {
      const [victim, sleeper] = [round % relays, (round + 1) % relays]
      await running[victim]?.working()
      await running[victim]?.kill()
      running[victim] = await start()
      await running[sleeper]?.working()
      running[sleeper]?.pause()
      await pause(leaseMs * 2.5)
      running[sleeper]?.resume()
      onRound()
    }
    await withClient(databaseUrl, async (client) => {
      await waitUntil('everything is delivered', async () => {
        const { rows } = await client.query(`SELECT FROM outbox WHERE state <> 'done' LIMIT 1`)
        return rows.length === 0
      })
    })
  } finally {
    await Promise.all(running.map((relay) => relay.stop()))
  }
  return await lookedUp(databaseUrl)
}

async function lookedUp(databaseUrl: string): Promise<Measured> {
  return await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<Measured>(`
      SELECT count(*)::int AS messages,
        (count(*) FILTER (WHERE times > 0))::int AS delivered,
        (count(*) FILTER (WHERE times > 1))::int AS "deliveredTwice",
        coalesce(sum((times - 1) * total_cents) FILTER (WHERE times > 1), 0)::int AS "centsTooMuch"
      FROM (
        SELECT o.id, orders.total_cents, count(c.outbox_id) AS times
        FROM outbox o JOIN orders ON orders.id = o.order_id LEFT JOIN charge c ON c.outbox_id = o.id
        GROUP BY 1, 2) AS message`)
    return rows[0] as Measured
  })
}
