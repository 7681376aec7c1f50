/** What blocks about MariaDB and MySQL may take for granted: a pool and a Holdfast on it. */
import { createHoldfast, type Holdfast, lockKey } from 'holdfast/mysql'
import { fromMysql2 } from 'holdfast/drivers/mysql2'
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise'

export { createHoldfast, isHoldfastError, lockKey, migrate } from 'holdfast/mysql'
export { fromMysql2 } from 'holdfast/drivers/mysql2'

export const pool: Pool = createPool({
  uri: process.env['MYSQL_URL'] ?? 'mysql://root@127.0.0.1/app',
})
export const hf: Holdfast<PoolConnection> = createHoldfast(fromMysql2(pool))

export const userId = 'user-1'
export const key = lockKey('user', userId)

export async function close(): Promise<void> {
  await pool.end()
}
