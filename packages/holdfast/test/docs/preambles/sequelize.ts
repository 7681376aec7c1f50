/** Blocks on Sequelize. */
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromSequelize } from 'holdfast/drivers/sequelize'
import { Sequelize, type Transaction } from 'sequelize'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromSequelize } from 'holdfast/drivers/sequelize'

export const sequelize: Sequelize = new Sequelize(process.env['DATABASE_URL'] as string, {
  logging: false,
})
export const hf: Holdfast<Transaction> = createHoldfast(fromSequelize(sequelize))
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await sequelize.close()
}
