import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import type { Driver } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { createMoves, initShards, type Moves } from '../../packages/holdfast/src/shards/index.ts'

export type Name = 'north' | 'south'
export const names = ['north', 'south'] as const

export function otherThan(name: Name): Name {
  return name === 'north' ? 'south' : 'north'
}

/** Two primaries on servers of their own. Even buckets begin in the north. */
export interface Cluster extends AsyncDisposable {
  readonly servers: Readonly<Record<Name, PostgresServer>>
  readonly urls: Readonly<Record<Name, string>>
  /** Of whoever watches; errors of idle connections are nobody's. */
  readonly pools: Readonly<Record<Name, pg.Pool>>
  readonly moves: Moves
}

/** What buckets are moved with at once, many times in a row, and gently; see docs/moving-buckets.md. */
const settings = {
  wal_level: 'logical',
  wal_retrieve_retry_interval: '200ms',
  max_sync_workers_per_subscription: '1',
}

export async function startCluster(): Promise<Cluster> {
  await using stack = new AsyncDisposableStack()
  const [north, south] = await Promise.all([
    startPostgres({ settings }),
    startPostgres({ settings }),
  ])
  stack.use(north)
  stack.use(south)
  const servers = { north, south }
  const urls = {
    north: await north.createDatabase('north'),
    south: await south.createDatabase('south'),
  }
  const pools = {
    north: new pg.Pool({ connectionString: urls.north, max: 4 }),
    south: new pg.Pool({ connectionString: urls.south, max: 4 }),
  }
  const drivers: Record<Name, Driver<pg.PoolClient>> = {
    north: fromPg(pools.north),
    south: fromPg(pools.south),
  }
  for (const name of names) {
    pools[name].on('error', () => undefined)
    stack.defer(() => pools[name].end())
    await migrate(drivers[name])
    await pools[name].query(
      'CREATE TABLE effect (bucket smallint, id uuid, call uuid, PRIMARY KEY (bucket, id, call))',
    )
  }
  await initShards(drivers)
  const moves = createMoves({
    north: { driver: drivers.north, connection: urls.north },
    south: { driver: drivers.south, connection: urls.south },
  })
  const kept = stack.move()
  return {
    servers,
    urls,
    pools,
    moves,
    [Symbol.asyncDispose]: async () => {
      await kept.disposeAsync()
    },
  }
}

/** Keys in buckets that are different from each other and from those in `not`. */
export function keysIn(
  count: number,
  prefix: string,
  not: ReadonlySet<number> = new Set(),
): string[] {
  const used = new Set(not)
  const keys: string[] = []
  for (let at = 0; keys.length < count; at += 1) {
    const key = `${prefix}-${at}`
    if (used.has(bucketOf(key))) continue
    used.add(bucketOf(key))
    keys.push(key)
  }
  return keys
}

/** The primaries that say they have a bucket. */
export async function ownersOf<N extends string>(
  { pools }: { readonly pools: Readonly<Record<N, pg.Pool>> },
  bucket: number,
): Promise<N[]> {
  const owners: N[] = []
  for (const [name, pool] of Object.entries<pg.Pool>(pools) as [N, pg.Pool][]) {
    const found = await pool.query('SELECT FROM holdfast.shard_map WHERE bucket = $1 AND here', [
      bucket,
    ])
    if (found.rowCount === 1) owners.push(name)
  }
  return owners
}
