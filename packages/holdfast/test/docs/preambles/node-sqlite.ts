/** What blocks about SQLite may take for granted: a file with a table, and a Holdfast on it. */
import { DatabaseSync } from 'node:sqlite'
import { createHoldfast, type Holdfast, lockKey } from 'holdfast/sqlite'
import { fromNodeSqlite } from 'holdfast/drivers/node-sqlite'

export { createHoldfast, isHoldfastError, lockKey, migrate } from 'holdfast/sqlite'
export { fromNodeSqlite } from 'holdfast/drivers/node-sqlite'

export const driver: ReturnType<typeof fromNodeSqlite<DatabaseSync>> = fromNodeSqlite(
  () => new DatabaseSync('app.db'),
)
export const hf: Holdfast<DatabaseSync> = createHoldfast(driver)

export const userId = 'user-1'
export const key = lockKey('user', userId)

export async function close(): Promise<void> {
  driver.close()
}
