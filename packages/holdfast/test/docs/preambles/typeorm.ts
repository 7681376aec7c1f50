/** Blocks on TypeORM. */
import 'reflect-metadata'
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromTypeOrm } from 'holdfast/drivers/typeorm'
import { DataSource, type EntityManager } from 'typeorm'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromTypeOrm } from 'holdfast/drivers/typeorm'

export const dataSource: DataSource = new DataSource({
  type: 'postgres',
  url: process.env['DATABASE_URL'] as string,
})
await dataSource.initialize()
export const hf: Holdfast<EntityManager> = createHoldfast(fromTypeOrm(dataSource))
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await dataSource.destroy()
}
