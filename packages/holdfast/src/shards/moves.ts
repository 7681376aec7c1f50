import { randomUUID } from 'node:crypto'
import { bucketCount } from '../core/bucket.ts'
import type { Driver } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { listMoves, type MoveFacts } from '../engines/postgres/shard-moves.ts'
import { readShards } from '../engines/postgres/shards.ts'
import { type MoveEnds, type MoveOutcome, type MoveTerms, runMove, undoMove } from './move-run.ts'
import { MoveSide } from './move-side.ts'
import { type PlannedMove, planRebalance, type RebalanceOptions } from './plan-rebalance.ts'
import type { ShardReading } from './shard-map.ts'

/** A primary, for somebody who moves buckets. */
export interface MovingPrimary<Tx> {
  /** As a role that owns the schema and may create publications and subscriptions; straight to the server. */
  readonly driver: Driver<Tx>
  /**
   * How other primaries reach this one: a connection string of libpq, with a role that may replicate. The
   * server that receives keeps it until the move has ended.
   */
  readonly connection: string
}

/** Options of `createMoves`. */
export interface MovesOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /**
   * The longest that operations in the buckets may have to wait; after that the move is undone. Less than
   * applications wait, which is the `wait` of `shardedDriver`. @defaultValue '5 s'
   */
  readonly pause?: Duration
  /** How long long transactions are waited for before the pause begins. @defaultValue '1 min' */
  readonly wait?: Duration
  /** Told how far a move has come, which goes on when that has resolved. */
  readonly onProgress?: MoveTerms['onProgress']
}

/** What to move. */
export interface MoveOptions {
  readonly buckets: readonly number[]
  /** Name of the primary that gets them. */
  readonly to: string
  /** Tables of your own to take along: `public.orders`. They need a column `bucket` in the primary key. */
  readonly tables?: readonly string[]
}

/** A move as a primary has written it down. */
export interface MoveEntry {
  readonly id: string
  readonly buckets: readonly number[]
  readonly source: string
  readonly target: string
  readonly step: string
  readonly ended: boolean
  readonly startedAt: string
  readonly changedAt: string
}

/** One primary, as it sees itself. */
export interface PrimaryStatus {
  readonly name: string
  /** Buckets it serves. */
  readonly here: number
  /** Buckets on their way to another one: nobody works in them. */
  readonly leaving: number
  /** Moves that have not ended, and the last ones that have. */
  readonly moves: readonly MoveEntry[]
}

/** Moves of buckets between primaries. */
export interface Moves {
  /**
   * Moves buckets while everything runs; from whichever primaries have them, from one after the other.
   *
   * @throws SHARD_MOVE_REFUSED, SHARD_MOVE_BLOCKED, SHARD_MOVE_STALLED
   */
  move(options: MoveOptions): Promise<readonly MoveOutcome[]>
  /** Brings a move to its end that nobody runs any more. @throws SHARD_MOVE_UNKNOWN */
  resume(id: string): Promise<MoveOutcome>
  /** Puts everything back as it was. @throws SHARD_MOVE_OVERTAKEN if the target has the buckets already */
  undo(id: string): Promise<void>
  /** How the primaries stand; `nobody` and `several` tell of buckets that are at none or more than one. */
  status(): Promise<ClusterStatus>
  /** What would make the primaries equal; nothing is done. Each is for `move`. */
  planRebalance(options?: RebalanceOptions): Promise<readonly PlannedMove[]>
}

/** All primaries together. */
export interface ClusterStatus {
  readonly primaries: readonly PrimaryStatus[]
  /** Buckets that no primary says it has, not even leaving. */
  readonly nobody: readonly number[]
  /** Buckets that several primaries say they have, one of them leaving: a move was decided and has not ended. */
  readonly several: readonly number[]
}

/**
 * Moves buckets between primaries, by PostgreSQL's own logical replication. Any step can be the last one of
 * the process: what was done is written down on both servers, and anybody can go on or put it back.
 *
 * @example
 * const moves = createMoves({
 *   north: { driver: fromPg(north), connection: northUrl },
 *   south: { driver: fromPg(south), connection: southUrl },
 * })
 * await moves.move({ buckets: [7, 8], to: 'south' })
 */
export function createMoves<Tx>(
  primaries: Readonly<Record<string, MovingPrimary<Tx>>>,
  options: MovesOptions = {},
): Moves {
  const { schema = 'holdfast', pause = '5 s', wait = '1 min', onProgress = () => {} } = options
  const terms: MoveTerms = {
    pauseMs: durationMs(pause, 'pause'),
    waitMs: durationMs(wait, 'wait'),
    onProgress,
  }
  const sides = new Map(
    Object.entries(primaries).map(([name, { driver }]) => [
      name,
      new MoveSide(name, driver, schema),
    ]),
  )
  const sideOf = (name: string): MoveSide<Tx> => {
    const side = sides.get(name)
    if (side !== undefined) return side
    const details = { option: 'primaries', subject: `${name} is none of the primaries` }
    throw holdfastError('OPTION_INVALID', { details })
  }
  const endsOf = ({ source, target }: MoveFacts): MoveEnds<Tx> => ({
    source: sideOf(source),
    target: sideOf(target),
    connection: primaries[source]?.connection ?? '',
  })
  const readings = (): Promise<[string, ShardReading][]> =>
    Promise.all([...sides.values()].map(async (side) => [side.name, await readingOf(side)]))
  const factsOf = async (id: string): Promise<MoveFacts> => {
    for (const side of sides.values()) {
      const journal = await side.journal(id)
      if (journal === undefined) continue
      const { buckets, source, target, detail } = journal
      return { id, buckets, source, target, tables: detail.tables ?? [] }
    }
    throw holdfastError('SHARD_MOVE_UNKNOWN')
  }
  return {
    async move({ buckets, to, tables = [] }) {
      const wanted = checkedBuckets(buckets)
      sideOf(to)
      const outcomes: MoveOutcome[] = []
      for (const [source, those] of ownersOf(wanted, await readings())) {
        if (source === to) continue
        const facts = { id: randomUUID(), buckets: those, source, target: to, tables }
        outcomes.push(await runMove(endsOf(facts), facts, terms))
      }
      return outcomes
    },
    async resume(id) {
      const facts = await factsOf(id)
      return await runMove(endsOf(facts), facts, terms)
    },
    async undo(id) {
      const facts = await factsOf(id)
      await undoMove(endsOf(facts), facts, terms)
    },
    async status() {
      const all = await readings()
      const statuses = await Promise.all(
        all.map(async ([name, { map }]) => ({
          name,
          here: (map ?? []).filter(([, , here, leaving]) => here && !leaving).length,
          leaving: (map ?? []).filter(([, , , leaving]) => leaving).length,
          moves: JSON.parse((await sideOf(name).ask(listMoves(schema, 5))) ?? '[]') as MoveEntry[],
        })),
      )
      const counts = Array.from({ length: bucketCount }, () => 0)
      for (const [, { map }] of all) {
        for (const [bucket, , here] of map ?? [])
          if (here) counts[bucket] = (counts[bucket] ?? 0) + 1
      }
      const at = (fits: (count: number) => boolean): number[] =>
        counts.flatMap((count, bucket) => (fits(count) ? [bucket] : []))
      return {
        primaries: statuses,
        nobody: at((count) => count === 0),
        several: at((count) => count > 1),
      }
    },
    async planRebalance(rebalance = {}) {
      const owned = new Map(
        (await readings()).map(([name, { map }]) => [
          name,
          (map ?? []).flatMap(([bucket, , here, leaving]) => (here && !leaving ? [bucket] : [])),
        ]),
      )
      return planRebalance(owned, rebalance)
    },
  }
}

async function readingOf<Tx>(side: MoveSide<Tx>): Promise<ShardReading> {
  const answer = await side.ask(readShards(side.schema))
  if (answer === null) throw holdfastError('SHARD_MAP_MISSING', { details: { subject: side.name } })
  return JSON.parse(answer) as ShardReading
}

function checkedBuckets(buckets: readonly number[]): readonly number[] {
  const wanted = [...new Set(buckets)].toSorted((a, b) => a - b)
  const wrong = wanted.some((each) => !Number.isInteger(each) || each < 0 || each >= bucketCount)
  if (!wrong && wanted.length > 0) return wanted
  throw holdfastError('OPTION_INVALID', {
    details: { option: 'buckets', subject: `buckets must be numbers from 0 to ${bucketCount - 1}` },
  })
}

/** By who says that it has them. @throws SHARD_MOVE_REFUSED if nobody does */
function ownersOf(
  buckets: readonly number[],
  readings: readonly (readonly [string, ShardReading])[],
): ReadonlyMap<string, number[]> {
  const owners = new Map<number, string>()
  for (const [name, { map }] of readings) {
    for (const [bucket, , here] of map ?? []) if (here) owners.set(bucket, name)
  }
  const byOwner = new Map<string, number[]>()
  for (const bucket of buckets) {
    const owner = owners.get(bucket)
    if (owner === undefined) {
      const details = { subject: `none of these primaries has bucket ${bucket}` }
      throw holdfastError('SHARD_MOVE_REFUSED', { details })
    }
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), bucket])
  }
  return byOwner
}
