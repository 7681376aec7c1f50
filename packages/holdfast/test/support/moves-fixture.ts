import { type PostgresServer, type PostgresVersion, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import type { SessionDriver } from '../../src/core/driver.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../src/index.ts'
import { migrate } from '../../src/schema/index.ts'
import {
  createMoves,
  initShards,
  type Moves,
  type MovesOptions,
  shardedDriver,
} from '../../src/shards/index.ts'
import type { Name } from './shards-fixture.ts'
import { hostileIfAsked } from './hostile-database.ts'

/**
 * Two primaries that buckets can be moved between: two databases of a server of its own, because PostgreSQL
 * waits for all transactions of a server before it sends what changes. Even buckets are in the north.
 */
export interface MovesFixture {
  server: PostgresServer
  urls: Record<Name, string>
  pools: Record<Name, pg.Pool>
  drivers: Record<Name, SessionDriver<pg.PoolClient>>
  hf: Holdfast<pg.PoolClient>
  moves(options?: MovesOptions): Moves
}

/** What makes PostgreSQL begin to send at once, and several at a time. */
export const movable = {
  wal_level: 'logical',
  wal_retrieve_retry_interval: '100ms',
  max_logical_replication_workers: '12',
  max_worker_processes: '16',
  max_prepared_transactions: '5',
}

export function movesFixture(beside = '', version?: PostgresVersion): MovesFixture {
  const fixture = {} as MovesFixture
  beforeAll(async () => {
    const server = await startPostgres({ settings: movable, ...(version && { version }) })
    const [north, south] = [
      await hostileIfAsked(await server.createDatabase('north')),
      await hostileIfAsked(await server.createDatabase('south')),
    ]
    const pools = {
      north: new pg.Pool({ connectionString: north, max: 10 }),
      south: new pg.Pool({ connectionString: south, max: 10 }),
    }
    const drivers = { north: fromPg(pools.north), south: fromPg(pools.south) }
    for (const name of ['north', 'south'] as const) {
      pools[name].on('error', () => undefined)
      await migrate(drivers[name])
      if (beside !== '') await pools[name].query(beside)
    }
    await initShards(drivers)
    const moves = (options?: MovesOptions): Moves =>
      createMoves(
        {
          north: { driver: drivers.north, connection: north },
          south: { driver: drivers.south, connection: south },
        },
        options,
      )
    const hf = createHoldfast(shardedDriver(drivers))
    Object.assign(fixture, { server, urls: { north, south }, pools, drivers, moves, hf })
  })
  afterAll(async () => {
    await fixture.pools.north.end()
    await fixture.pools.south.end()
    await fixture.server.stop('immediate')
  })
  return fixture
}

/** Every row of a bucket on one primary, by table: what a move has to bring over, and to leave nothing of. */
export async function contentsOf(
  pool: pg.Pool,
  bucket: number,
  beside: readonly string[] = [],
): Promise<Record<string, string[]>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT concat(n.nspname, '.', c.relname) AS name FROM unnest(holdfast.move_tables($1)) AS t
     JOIN pg_class c ON c.oid = t JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY 1`,
    [beside],
  )
  const contents: Record<string, string[]> = {}
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(
      `SELECT t::text AS row FROM ${name} t WHERE bucket = $1 ORDER BY 1`,
      [bucket],
    )
    if (rows.length > 0) contents[name.replace('holdfast.', '')] = rows.map(({ row }) => row)
  }
  return contents
}

/** What PostgreSQL still keeps or runs for moves, on the whole server. */
export async function leftovers({ pools }: MovesFixture): Promise<readonly string[]> {
  const found: string[] = []
  for (const pool of [pools.north, pools.south]) {
    const { rows } = await pool.query<{ what: string }>(
      `SELECT 'publication ' || pubname AS what FROM pg_publication
       UNION SELECT 'slot ' || slot_name FROM pg_replication_slots
       UNION SELECT 'subscription ' || subname FROM pg_subscription
       UNION SELECT 'origin ' || roname FROM pg_replication_origin
       UNION SELECT 'end of ' || bucket FROM holdfast.shard_end
       UNION SELECT 'open move ' || step FROM holdfast.shard_move WHERE ended_at IS NULL
       UNION SELECT 'leaving ' || bucket FROM holdfast.shard_map WHERE leaving`,
    )
    found.push(...rows.map(({ what }) => what))
  }
  return found
}

/** Who says that it has a bucket. */
export async function ownersOf({ pools }: MovesFixture, bucket: number): Promise<readonly Name[]> {
  const owners: Name[] = []
  for (const name of ['north', 'south'] as const) {
    const { rowCount } = await pools[name].query(
      'SELECT FROM holdfast.shard_map WHERE bucket = $1 AND here',
      [bucket],
    )
    if (rowCount === 1) owners.push(name)
  }
  return owners
}
