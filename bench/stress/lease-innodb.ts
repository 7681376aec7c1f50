import type { PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast, migrate } from '../../packages/holdfast/src/mysql.ts'
import { numberOf, openInnodbPool, rowsOf } from '../engines/innodb-pool.ts'
import type { LeaseStore } from './lease-store.ts'

export function innodbLeaseStore(url: string, size: number): LeaseStore<PoolConnection> {
  const pool = openInnodbPool(url, size)
  const driver = fromMysql2(pool)
  return {
    // Whoever shares a driver is inside of its transactions.
    open: () => createHoldfast(fromMysql2(pool)),
    async prepare() {
      await migrate(driver)
      await pool.query(
        `CREATE TABLE written (seq BIGINT AUTO_INCREMENT PRIMARY KEY, lease VARCHAR(64) NOT NULL,
           token BIGINT NOT NULL) ENGINE=InnoDB`,
      )
    },
    async write(tx, lease, token) {
      await tx.query('INSERT INTO written (lease, token) VALUES (?, ?)', [lease, String(token)])
    },
    async lookAt(tx, lease) {
      const [row] = await rowsOf(
        tx,
        'SELECT CAST(token AS CHAR) AS token FROM holdfast_lease WHERE name = ?',
        [lease],
      )
      return row === undefined ? undefined : String(row['token'])
    },
    staleWrites: async () =>
      await numberOf(
        pool,
        `SELECT COUNT(*) FROM (
           SELECT token, MAX(token) OVER (PARTITION BY lease ORDER BY seq) AS highest FROM written
         ) w WHERE token < highest`,
      ),
    async forgetWrites() {
      await pool.query('TRUNCATE written')
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
