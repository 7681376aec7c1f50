import type { PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { openPool } from '../harness/open-pool.ts'
import type { LeaseStore } from './lease-store.ts'

export async function postgresLeaseStore(
  url: string,
  size: number,
): Promise<LeaseStore<PoolClient>> {
  const pool = await openPool(url, size)
  const driver = fromPg(pool)
  return {
    // Whoever shares a driver is inside of its transactions.
    open: () => createHoldfast(fromPg(pool)),
    leaderBySession: (options) => createHoldfast(driver).leader({ ...options, session: driver }),
    async prepare() {
      await migrate(driver)
      await pool.query(
        'CREATE TABLE written (seq bigserial PRIMARY KEY, lease text NOT NULL, token bigint NOT NULL)',
      )
    },
    async write(tx, lease, token) {
      await tx.query('INSERT INTO written (lease, token) VALUES ($1, $2)', [lease, String(token)])
    },
    async lookAt(tx, lease) {
      const { rows } = await tx.query<{ token: string }>(
        'SELECT token FROM holdfast.lease WHERE name = $1',
        [lease],
      )
      return rows[0]?.token
    },
    async staleWrites() {
      const { rows } = await pool.query<{ stale: number }>(
        `SELECT count(*)::int AS stale FROM (
           SELECT token, max(token) OVER (PARTITION BY lease ORDER BY seq) AS highest FROM written
         ) w WHERE token < highest`,
      )
      return rows[0]?.stale ?? 0
    },
    async forgetWrites() {
      await pool.query('TRUNCATE written')
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
