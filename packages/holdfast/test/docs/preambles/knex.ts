/** Blocks on Knex. */
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromKnex } from 'holdfast/drivers/knex'
import knexOf, { type Knex } from 'knex'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromKnex } from 'holdfast/drivers/knex'

export const knex: Knex = knexOf({
  client: 'pg',
  connection: process.env['DATABASE_URL'] as string,
})
export const hf: Holdfast<Knex.Transaction> = createHoldfast(fromKnex(knex))
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await knex.destroy()
}
