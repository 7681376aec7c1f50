/** Blocks on MikroORM. */
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromMikroOrm } from 'holdfast/drivers/mikro-orm'
import { EntitySchema } from '@mikro-orm/core'
import { MikroORM, type SqlEntityManager } from '@mikro-orm/postgresql'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromMikroOrm } from 'holdfast/drivers/mikro-orm'

const entity = new EntitySchema({
  name: 'Account',
  properties: { id: { type: 'text', primary: true } },
})
export const orm: MikroORM = await MikroORM.init({
  clientUrl: process.env['DATABASE_URL'] as string,
  entities: [entity],
})
export const hf: Holdfast<SqlEntityManager> = createHoldfast(
  fromMikroOrm(orm.em as SqlEntityManager),
)
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await orm.close(true)
}
