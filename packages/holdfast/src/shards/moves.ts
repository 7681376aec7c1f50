import { randomUUID } from 'node:crypto'
import { bucketCount } from '../core/bucket.ts'
import type { Driver } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import type { MoveFacts } from '../engines/postgres/shards/moves.ts'
import { neededOf, type PrimaryFailure } from '../tx/ask-each.ts'
import { ClusterLooks, type Readings } from './cluster-looks.ts'
import type { ClusterStatus } from './cluster-status.ts'
import { assertRights, tasksOf } from './move-rights.ts'
import { type MoveEnds, type MoveOutcome, type MoveTerms, runMove, undoMove } from './move-run.ts'
import { checkedTables } from './move-shape.ts'
import { MoveSide } from './move-side.ts'
import { startMove } from './move-start.ts'
import {
  type PlannedMove,
  planRebalance,
  type RebalanceOptions,
  rebalanceOptions,
} from './plan-rebalance.ts'
import {
  adoptAll,
  clearAll,
  forgottenMoves,
  type Repaired,
  type RepairOptions,
  repairOptions,
} from './repair.ts'
import { believedOwners, type ShardReading } from './shard-map.ts'
import { objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

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

const movesOptions: KnownOptions<MovesOptions> = {
  schema: 'text',
  pause: 'checked',
  wait: 'checked',
  onProgress: 'function',
}

const moveOptions: KnownOptions<MoveOptions> = {
  buckets: 'list',
  to: 'text',
  tables: 'texts',
}

/** Moves of buckets between primaries. */
export interface Moves {
  /**
   * Moves buckets while everything runs; from whichever primaries have them, from one after the other. Both ends are
   * looked at first: that they are parts of one cluster, that tables are the same and can be moved as a whole, that no
   * foreign key would be left behind, that the target has no rows in these buckets, and that the roles have the rights
   * it takes. Whatever a server has against it before the first row is copied undoes the move. Nothing is deleted at the
   * source unless the target has as many rows, table by table and bucket by bucket.
   *
   * @throws SHARD_MOVE_REFUSED, SHARD_MOVE_BLOCKED, SHARD_MOVE_INCOMPLETE, SHARD_MOVE_STALLED, SHARD_MAP_INVALID,
   * SHARD_PRIMARY_NEEDED
   */
  move(options: MoveOptions): Promise<readonly MoveOutcome[]>
  /** What `move` would do, without the buckets that are there already; nothing is done. @throws as `move` */
  planMove(options: Pick<MoveOptions, 'buckets' | 'to'>): Promise<readonly PlannedMove[]>
  /**
   * Brings a move to its end that nobody runs any more.
   *
   * @throws OPTION_INVALID, SHARD_MOVE_UNKNOWN, SHARD_MOVE_REFUSED if a right is missing, SHARD_PRIMARY_NEEDED
   */
  resume(id: string): Promise<MoveOutcome>
  /**
   * Puts everything back as it was.
   *
   * @throws SHARD_MOVE_OVERTAKEN if the target has the buckets already, and as `resume`
   */
  undo(id: string): Promise<void>
  /**
   * How the primaries stand. One that does not answer is among `failures`, one that was not named here among `absent`;
   * `nobody`, `several`, `stale` and `strays` tell of buckets that are not at one primary alone.
   * @throws SHARD_MAP_INVALID
   */
  status(): Promise<ClusterStatus>
  /**
   * Puts right what a primary that came back from a backup got wrong: it gives up what others have, moves whose end it
   * has forgotten are ended, and rows of others' buckets are deleted.
   *
   * @throws SHARD_PRIMARY_NEEDED if one does not answer that is not in `without`, SHARD_MOVE_REFUSED if a right is missing
   */
  repair(options?: RepairOptions): Promise<Repaired>
  /** What would make the primaries equal; nothing is done. Each is for `move`. */
  planRebalance(options?: RebalanceOptions): Promise<readonly PlannedMove[]>
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
  given: MovesOptions = {},
): Moves {
  const options = optionsGiven(given, movesOptions)
  const { schema = 'holdfast', pause = '5 s', wait = '1 min', onProgress = () => {} } = options
  const terms: MoveTerms = {
    pauseMs: durationMs(pause, 'pause'),
    waitMs: durationMs(wait, 'wait'),
    onProgress,
  }
  const sides = new Map(
    Object.entries(objectGiven(primaries, 'primaries')).map(([name, given]) => {
      const { driver } = objectGiven(given, name)
      assertDriver(driver, 'driver of each of the primaries')
      return [name, new MoveSide(name, driver, schema)]
    }),
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
  const looks = new ClusterLooks(sides, schema)
  /** What a move is about, from whoever has written it down. */
  const factsOf = async (id: string): Promise<MoveFacts> => {
    const wanted = checkedId(id)
    const failures: PrimaryFailure[] = []
    const asked = [...sides].map(async ([primary, side]) => {
      try {
        return await side.lookUp(wanted)
      } catch (error) {
        failures.push({ primary, error })
      }
      return undefined
    })
    const journal = (await Promise.all(asked)).find((each) => each !== undefined)
    // Whoever did not answer may know it.
    if (journal === undefined) throw neededOf(failures) ?? holdfastError('SHARD_MOVE_UNKNOWN')
    const { buckets, source, target, detail } = journal
    const cluster = await looks.clusterOf([sideOf(source), sideOf(target)])
    return { id, cluster, buckets, source, target, tables: detail.tables ?? [] }
  }
  const resume = async (id: string): Promise<MoveOutcome> => {
    const facts = await factsOf(id)
    const ends = endsOf(facts)
    await assertRights(tasksOf(ends, 'resume'), facts.tables)
    return await runMove(ends, facts, terms)
  }
  const planOf = (
    { buckets, to }: Pick<MoveOptions, 'buckets' | 'to'>,
    { readings, failures }: Readings,
  ): readonly PlannedMove[] => {
    const target = sideOf(to).name
    const failure = neededOf(failures.filter(({ primary }) => primary === target))
    if (failure !== undefined) throw failure
    const byOwner = ownersOf(checkedBuckets(buckets), readings, failures)
    return [...byOwner].flatMap(([from, those]) =>
      from === to ? [] : [{ from, to, buckets: those }],
    )
  }
  return {
    async move(given) {
      const { tables = [], ...wanted } = optionsGiven(given, moveOptions)
      const taken = checkedTables(tables)
      const outcomes: MoveOutcome[] = []
      for (const { from: source, to: target, buckets } of planOf(wanted, await looks.confirmed())) {
        const cluster = await looks.clusterOf([sideOf(source), sideOf(target)])
        const facts = { id: randomUUID(), cluster, buckets, source, target, tables: taken }
        outcomes.push(await startMove(endsOf(facts), facts, terms))
      }
      return outcomes
    },
    planMove: async (wanted) => planOf(wanted, await looks.read()),
    resume,
    async undo(id) {
      const facts = await factsOf(id)
      const ends = endsOf(facts)
      await assertRights(tasksOf(ends, 'undo'))
      await undoMove(ends, facts, terms)
    },
    status: () => looks.status(),
    async repair(given) {
      const { tables = [], adopt = false, without = [] } = optionsGiven(given, repairOptions)
      const strays = checkedTables(tables)
      const before = await looks.status()
      const there = looks.without(without.map((name) => sideOf(name).name))
      const failure = neededOf(before.failures.filter(({ primary }) => !without.includes(primary)))
      if (failure !== undefined) throw failure
      await assertRights([...there.sides.values()].map((side) => ({ side, parts: ['delete'] })))
      const { readings } = await there.confirmed()
      const resumed = forgottenMoves(before)
      for (const id of resumed) await resume(id)
      let rows = 0
      for (const name of readings.keys()) rows += await clearAll(sideOf(name), strays)
      const { nobody } = await there.status()
      const adopted = adopt ? await adoptAll(nobody, [...readings.values()], there.sides) : []
      return { givenUp: before.stale, resumed, rows, adopted }
    },
    async planRebalance(given) {
      const rebalance = optionsGiven(given, rebalanceOptions)
      const { readings, failures } = await looks.read()
      const failure = neededOf(failures)
      if (failure !== undefined) throw failure
      const owned = new Map(
        [...readings].map(([name, { map }]) => [
          name,
          (map ?? []).flatMap(([bucket, , here, leaving]) => (here && !leaving ? [bucket] : [])),
        ]),
      )
      return planRebalance(owned, rebalance)
    },
  }
}

function checkedBuckets(buckets: readonly number[]): readonly number[] {
  const wanted = [...new Set(buckets)].toSorted((a, b) => a - b)
  const wrong = wanted.some((each) => !Number.isInteger(each) || each < 0 || each >= bucketCount)
  if (!wrong && wanted.length > 0) return wanted
  throw holdfastError('OPTION_INVALID', {
    details: { option: 'buckets', subject: `buckets must be numbers from 0 to ${bucketCount - 1}` },
  })
}

function checkedId(id: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return id
  throw holdfastError('OPTION_INVALID', {
    details: { option: 'id', subject: 'id must be the id of a move, which is a UUID' },
  })
}

/** By who says that it has them. @throws SHARD_MOVE_REFUSED if nobody does, SHARD_PRIMARY_NEEDED if one cannot be asked */
function ownersOf(
  buckets: readonly number[],
  readings: ReadonlyMap<string, ShardReading>,
  failures: readonly PrimaryFailure[],
): ReadonlyMap<string, number[]> {
  const owners = new Map<number, string>()
  for (const [name, { map }] of readings) {
    for (const [bucket, , here] of map ?? []) if (here) owners.set(bucket, name)
  }
  const byOwner = new Map<string, number[]>()
  for (const bucket of buckets) {
    const owner = owners.get(bucket)
    if (owner === undefined) {
      const at = believedOwners([...readings.values()])[bucket]?.owner
      const subject = `none of these primaries has bucket ${bucket}; it was given to ${at}`
      throw neededOf(failures) ?? holdfastError('SHARD_MOVE_REFUSED', { details: { subject } })
    }
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), bucket])
  }
  return byOwner
}
