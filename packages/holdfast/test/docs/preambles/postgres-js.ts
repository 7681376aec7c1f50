/** Blocks on postgres.js. */
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromPostgresJs } from 'holdfast/drivers/postgres-js'
import postgres from 'postgres'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromPostgresJs } from 'holdfast/drivers/postgres-js'

export const sql: postgres.Sql = postgres(process.env['DATABASE_URL'] as string)
export const hf: Holdfast<postgres.TransactionSql> = createHoldfast(fromPostgresJs(sql))
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await sql.end()
}
