/** What the blocks about moving buckets may take for granted: two primaries that are one cluster. */
import { startPostgres } from '@holdfast/testkit'
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import { createMoves, initShards, type Moves, shardedDriver } from 'holdfast/shards'
import pg from 'pg'

export { isHoldfastError } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { createMoves } from 'holdfast/shards'

// PostgreSQL waits for all transactions of a server before it sends what changes: not the server of all tests.
const server = await startPostgres({
  settings: { wal_level: 'logical', wal_retrieve_retry_interval: '200ms' },
})
export const northUrl: string = await server.createDatabase('north')
export const southUrl: string = await server.createDatabase('south')
export const north: pg.Pool = new pg.Pool({ connectionString: northUrl })
export const south: pg.Pool = new pg.Pool({ connectionString: southUrl })
for (const pool of [north, south]) {
  await migrate(fromPg(pool))
  await pool.query(
    'CREATE TABLE orders (bucket smallint, id text, total int, PRIMARY KEY (bucket, id))',
  )
}
await initShards({ north: fromPg(north), south: fromPg(south) })

export const hf: Holdfast<pg.PoolClient> = createHoldfast(
  shardedDriver({ north: fromPg(north), south: fromPg(south) }),
)
export const moves: Moves = createMoves({
  north: { driver: fromPg(north), connection: northUrl },
  south: { driver: fromPg(south), connection: southUrl },
})
/** The bucket of `ann`. */
export const bucket = 1177
export const moveId = '00000000-0000-4000-8000-000000000000'

export async function close(): Promise<void> {
  await north.end()
  await south.end()
  await server.stop('immediate')
}
