/** What the blocks about several primaries may take for granted: two of them. */
import { createDatabase } from '@holdfast/testkit'
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import type { Quota } from 'holdfast/quota'
import { migrate } from 'holdfast/schema'
import { initShards, shardedDriver } from 'holdfast/shards'
import pg from 'pg'

export { createHoldfast, inScope, lockKey } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { holdAcross, initShards, shardedDriver } from 'holdfast/shards'

const url = process.env['DATABASE_URL'] as string
export const north: pg.Pool = new pg.Pool({ connectionString: url })
export const south: pg.Pool = new pg.Pool({ connectionString: await createDatabase(url) })
for (const pool of [north, south]) await migrate(fromPg(pool))
await initShards({ north: fromPg(north), south: fromPg(south) })

export const hf: Holdfast<pg.PoolClient> = createHoldfast(
  shardedDriver({ north: fromPg(north), south: fromPg(south) }),
)
export const calls: Quota<pg.PoolClient, number> = hf.quota({
  name: 'api-calls',
  limit: 100,
  per: 'month',
})
export const userId = 'ann'
export const order: { readonly id: string } = { id: 'order-1' }

export async function close(): Promise<void> {
  await north.end()
  await south.end()
}
