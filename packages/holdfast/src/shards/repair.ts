import { adoptBuckets, clearStrays } from '../engines/postgres/shards/moves.ts'
import type { ClusterStatus, Misplaced } from './cluster-status.ts'
import type { MoveSide } from './move-side.ts'
import { believedOwners, type ShardReading } from './shard-map.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** Options of `repair`. */
export interface RepairOptions {
  /** Tables of your own whose stray rows are deleted, too: `public.orders`. */
  readonly tables?: readonly string[]
  /**
   * Gives buckets that nobody has to the primary that had them last, empty: what was in them was lost with what that
   * primary has forgotten. @defaultValue false
   */
  readonly adopt?: boolean
  /** Primaries that are gone for good, or for long: the others are compared without them. */
  readonly without?: readonly string[]
}

export const repairOptions: KnownOptions<RepairOptions> = {
  tables: 'texts',
  adopt: 'boolean',
  without: 'texts',
}

/** What `repair` did. */
export interface Repaired {
  /** Buckets that a primary believed to have, and has given up. */
  readonly givenUp: readonly Misplaced[]
  /** Moves that one of their primaries had forgotten the end of. */
  readonly resumed: readonly string[]
  /** Rows of other primaries' buckets that were deleted. */
  readonly rows: number
  /** Buckets that nobody had, and who has them now. */
  readonly adopted: readonly Misplaced[]
}

const rowsAtOnce = 5_000

/** Deletes what is left of buckets that are others'. Answers how many rows that were. */
export async function clearAll<Tx>(side: MoveSide<Tx>, tables: readonly string[]): Promise<number> {
  for (let rows = 0; ; ) {
    const deleted = Number(await side.ask(clearStrays(side.schema, tables, rowsAtOnce)))
    rows += deleted
    if (deleted < rowsAtOnce) return rows
  }
}

/** Gives each to the primary that had it last, if that is one of these. */
export async function adoptAll<Tx>(
  nobody: readonly number[],
  readings: readonly ShardReading[],
  sides: ReadonlyMap<string, MoveSide<Tx>>,
): Promise<readonly Misplaced[]> {
  const latest = believedOwners(readings)
  const adopted: Misplaced[] = []
  for (const [primary, side] of sides) {
    const buckets = nobody.filter((bucket) => latest[bucket]?.owner === primary)
    if (buckets.length === 0) continue
    const versions = buckets.map((bucket) => latest[bucket]?.version ?? 1)
    await side.ask(adoptBuckets(side.schema, buckets, versions))
    adopted.push({ primary, buckets })
  }
  return adopted
}

/** Moves that the target has ended and the source, restored to before that, has not. */
export function forgottenMoves({ primaries }: ClusterStatus): readonly string[] {
  const ended = new Set(
    primaries.flatMap(({ name, moves }) =>
      moves.flatMap(({ id, target, step }) =>
        name === target && (step === 'taken' || step === 'done') ? [id] : [],
      ),
    ),
  )
  const open = primaries.flatMap(({ name, moves }) =>
    moves.flatMap(({ id, source, ended: isOver }) => (name === source && !isOver ? [id] : [])),
  )
  return open.filter((id) => ended.has(id))
}
