import { withClient } from '@holdfast/testkit'
import type { ClaimsOptions } from '../../packages/holdfast/src/entries/claims.ts'

/** A table as users have them: what is to be done, and the columns of a claim. */
export async function createTasks(url: string, table: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`
      CREATE TABLE ${table} (
        id bigint PRIMARY KEY,
        payload jsonb NOT NULL,
        status text NOT NULL DEFAULT 'pending',
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        attempts int NOT NULL DEFAULT 0,
        claim_token uuid,
        lease_until timestamptz
      ) WITH (fillfactor = 70);
      CREATE INDEX ON ${table} (created_at, id) WHERE status = 'pending';
      CREATE INDEX ON ${table} (lease_until) WHERE status = 'claimed'`)
  })
}

/** All of it pending. */
export async function refill(url: string, table: string, rows: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`TRUNCATE ${table}`)
    await client.query(
      `INSERT INTO ${table} (id, payload) SELECT g, jsonb_build_object('order', g) FROM generate_series(1, $1::int) g`,
      [rows],
    )
    await client.query(`VACUUM ANALYZE ${table}`)
  })
}

/** How many were done. */
export async function doneIn(url: string, table: string): Promise<number> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${table} WHERE status = 'done'`,
    )
    return rows[0]?.n ?? 0
  })
}

export function tasksOptions(table: string): ClaimsOptions {
  return { table, columns: { attempts: 'attempts' }, orderBy: ['created_at', 'id'] }
}
