import { Pool, type PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import type { ClaimsStore, Found, Look } from './claims-store.ts'
import { claimTables, type TaskRow, taskOptions } from './claims-table.ts'

export function postgresClaimsStore(url: string, size: number): ClaimsStore<PoolClient> {
  const pool = new Pool({ connectionString: url, max: size })
  // The server ends transactions of processes that were paused in them.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const hf = createHoldfast(fromPg(pool))
  return {
    claims: hf.claims<TaskRow>(taskOptions),
    async fill(tasks) {
      await pool.query(claimTables)
      await pool.query('INSERT INTO task (id) SELECT generate_series(1, $1::int)', [tasks])
      await pool.query('VACUUM ANALYZE task')
    },
    async look(duplicatesToo) {
      const { rows } = await pool.query<Look>(`
        SELECT (SELECT count(*)::int FROM task WHERE status IN ('pending', 'claimed')) AS left,
          coalesce((SELECT extract(epoch FROM max(clock_timestamp() - lease_until)) * 1000 FROM task
            WHERE status = 'claimed'), 0)::float AS overdue,
          ARRAY(SELECT DISTINCT claim_token::text FROM (
            SELECT claim_token FROM task WHERE status = 'claimed' AND lease_until < clock_timestamp()
            FOR SHARE SKIP LOCKED) AS free) AS tokens,
          extract(epoch FROM clock_timestamp())::float * 1000 AS now,
          ${duplicatesToo ? '(SELECT count(*) - count(DISTINCT task) FROM effect)::int' : '0'} AS duplicates`)
      return rows[0] as Look
    },
    async findings() {
      const { rows } = await pool.query<Found>(`
        SELECT (SELECT count(*) - count(DISTINCT task) FROM effect)::int AS duplicates,
          (SELECT count(*) FROM task t WHERE NOT EXISTS (SELECT FROM effect e WHERE e.task = t.id))::int AS missing,
          (SELECT count(*) FROM history WHERE change = 1 AND attempt > 1)::int AS recovered,
          (SELECT coalesce(max(abs(task - place)), 0)::int FROM (
            SELECT task, row_number() OVER (ORDER BY seq) AS place FROM history
            WHERE change = 1 AND attempt = 1) AS first) AS displaced`)
      return rows[0] as Found
    },
    transaction: async (body) => await hf.transaction(body),
    async effects(tx, ids) {
      await tx.query('INSERT INTO effect SELECT unnest($1::bigint[]), $2', [ids, process.pid])
    },
    async finishUnfenced(tx, ids) {
      await tx.query(
        `UPDATE task SET status = 'done' WHERE id = ANY ($1::bigint[]) AND status = 'claimed'`,
        [ids],
      )
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
