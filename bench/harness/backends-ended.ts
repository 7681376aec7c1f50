import { waitUntil } from '@holdfast/testkit'
import type { ClientBase } from 'pg'

/** Waits for all other clients of a database to be gone: a backend hands in its counts when it ends. */
export async function backendsEnded(client: ClientBase): Promise<void> {
  await waitUntil('all other backends have ended', async () => {
    const { rows } = await client.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND backend_type = 'client backend'`,
    )
    return rows.length === 0 ? true : undefined
  })
}
