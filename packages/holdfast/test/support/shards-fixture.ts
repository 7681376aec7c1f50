import { createDatabase, type PostgresServer, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { bucketOf } from '../../src/core/bucket.ts'
import type { SessionDriver } from '../../src/core/driver.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../src/index.ts'
import { migrate } from '../../src/schema/index.ts'
import { initShards, type ShardedOptions, shardedDriver } from '../../src/shards/index.ts'
import { testDatabase } from './database.ts'
import { hostileIfAsked } from './hostile-database.ts'

/** The primaries of a test: two servers, the one of all tests and one of its own. */
export const names = ['north', 'south'] as const
export type Name = (typeof names)[number]

export interface ShardsFixture {
  urls: Record<Name, string>
  pools: Record<Name, pg.Pool>
  drivers: Record<Name, SessionDriver<pg.PoolClient>>
  hf: Holdfast<pg.PoolClient>
  /** Another application on the same primaries, with a map of its own. */
  create(options?: ShardedOptions): Holdfast<pg.PoolClient>
}

/** Even buckets are in the north, odd ones in the south. */
export function shardsFixture(beside = ''): ShardsFixture {
  const fixture = {} as ShardsFixture
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
    const urls = {
      north: (await testDatabase()).directUrl,
      south: await hostileIfAsked(await createDatabase(server.url())),
    }
    const pools = {
      north: new pg.Pool({ connectionString: urls.north, max: 8 }),
      south: new pg.Pool({ connectionString: urls.south, max: 8 }),
    }
    const drivers = { north: fromPg(pools.north), south: fromPg(pools.south) }
    for (const name of names) {
      pools[name].on('error', () => undefined)
      await migrate(drivers[name])
      if (beside !== '') await pools[name].query(beside)
    }
    await initShards(drivers)
    const create = (options?: ShardedOptions): Holdfast<pg.PoolClient> =>
      createHoldfast(shardedDriver(drivers, options))
    Object.assign(fixture, { urls, pools, drivers, create, hf: create() })
  })
  afterAll(async () => {
    for (const name of names) await fixture.pools[name].end()
    await server.stop('immediate')
  })
  return fixture
}

let counter = 0
const used = new Set<number>()

/** A scope in a bucket of this primary that nobody else uses. */
export function scopeIn(name: Name): string {
  for (;;) {
    counter += 1
    const scope = `scope-${counter}`
    const bucket = bucketOf(scope)
    if (names[bucket % 2] !== name || used.has(bucket)) continue
    used.add(bucket)
    return scope
  }
}

/** Hands a bucket over as a finished move would have done; there are no rows in it to be moved. */
export async function handOver({ pools }: ShardsFixture, bucket: number, to: Name): Promise<void> {
  const from = to === 'north' ? 'south' : 'north'
  await pools[to].query(
    `UPDATE holdfast.shard_map SET here = true, shard = $2, version = version + 1 WHERE bucket = $1`,
    [bucket, to],
  )
  await pools[from].query(
    `UPDATE holdfast.shard_map SET here = false, leaving = false, shard = $2, version = version + 1
     WHERE bucket = $1`,
    [bucket, to],
  )
}

/** Marks a bucket as one that is about to go, or takes the mark away. */
export async function setLeaving(
  { pools }: ShardsFixture,
  bucket: number,
  from: Name,
  leaving: boolean,
): Promise<void> {
  await pools[from].query('UPDATE holdfast.shard_map SET leaving = $2 WHERE bucket = $1', [
    bucket,
    leaving,
  ])
}

/** For controls: runs the body while no server checks anything. */
export async function withoutCheck(
  { pools }: ShardsFixture,
  body: () => Promise<void>,
): Promise<void> {
  const { rows } = await pools.north.query<{ text: string }>(
    `SELECT pg_get_functiondef('holdfast.here(integer[])'::regprocedure) AS text`,
  )
  const unchecked = `CREATE OR REPLACE FUNCTION holdfast.here(buckets integer[]) RETURNS boolean
    LANGUAGE sql STABLE AS 'SELECT true'`
  try {
    for (const name of names) await pools[name].query(unchecked)
    await body()
  } finally {
    for (const name of names) await pools[name].query(rows[0]?.text as string)
  }
}

/** How many rows of a table each primary has in a bucket. */
export async function rowsIn(
  { pools }: ShardsFixture,
  table: string,
  bucket: number,
): Promise<Record<Name, number>> {
  const count = async (name: Name): Promise<number> => {
    const { rows } = await pools[name].query<{ count: string }>(
      `SELECT count(*) FROM holdfast.${table} WHERE bucket = $1`,
      [bucket],
    )
    return Number(rows[0]?.count)
  }
  return { north: await count('north'), south: await count('south') }
}
