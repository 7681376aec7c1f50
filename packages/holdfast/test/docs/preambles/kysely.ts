/** Blocks on Kysely. */
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromKysely } from 'holdfast/drivers/kysely'
import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromKysely } from 'holdfast/drivers/kysely'

export interface Database {
  readonly account: { readonly id: string; readonly balance: number }
}

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const db: Kysely<Database> = new Kysely({ dialect: new PostgresDialect({ pool }) })
export const hf: Holdfast<Transaction<Database>> = createHoldfast(fromKysely(db))
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await db.destroy()
}
