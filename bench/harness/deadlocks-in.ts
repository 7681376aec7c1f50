import { withClient } from '@holdfast/testkit'
import { backendsEnded } from './backends-ended.ts'

/** The server's own count, once everyone else has left the database. */
export async function deadlocksIn(url: string): Promise<number> {
  return await withClient(url, async (client) => {
    await backendsEnded(client)
    const { rows } = await client.query<{ deadlocks: number }>(
      'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
    )
    return rows[0]?.deadlocks ?? 0
  })
}
