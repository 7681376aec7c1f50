import { holdfastError } from '../core/errors.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** Options of `planRebalance`. */
export interface RebalanceOptions {
  /** Primaries that are to have no buckets in the end. */
  readonly drain?: readonly string[]
  /** How many buckets go in one move. @defaultValue 64 */
  readonly atOnce?: number
}

export const rebalanceOptions: KnownOptions<RebalanceOptions> = {
  drain: 'texts',
  atOnce: 'number',
}

/** One move of a plan. */
export interface PlannedMove {
  readonly from: string
  readonly to: string
  readonly buckets: readonly number[]
}

/**
 * Moves that leave every primary with as many buckets as any other, give or take one, and move no bucket
 * that need not be. The same owners give the same plan.
 *
 * @throws OPTION_INVALID
 */
export function planRebalance(
  owned: ReadonlyMap<string, readonly number[]>,
  { drain = [], atOnce = 64 }: RebalanceOptions = {},
): readonly PlannedMove[] {
  const names = [...owned.keys()]
  const kept = names.filter((name) => !drain.includes(name))
  if (kept.length === 0 || drain.some((name) => !names.includes(name))) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'drain', subject: 'drain must name some of the primaries, and not all' },
    })
  }
  if (!Number.isInteger(atOnce) || atOnce < 1) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'atOnce', subject: 'atOnce must be a whole number, 1 or more' },
    })
  }
  const goals = goalsOf(owned, kept)
  const spare = names.flatMap((from) => {
    const buckets = owned.get(from) ?? []
    return buckets.slice(goals.get(from) ?? 0).map((bucket) => ({ from, bucket }))
  })
  const moves: { from: string; to: string; buckets: number[] }[] = []
  for (const to of kept) {
    const missing = (goals.get(to) ?? 0) - (owned.get(to)?.length ?? 0)
    for (const { from, bucket } of spare.splice(0, Math.max(0, missing))) {
      const last = moves.at(-1)
      if (last?.from === from && last.to === to && last.buckets.length < atOnce) {
        last.buckets.push(bucket)
      } else {
        moves.push({ from, to, buckets: [bucket] })
      }
    }
  }
  return moves
}

/** How many each should have. Those who have most get the odd ones, so that fewer have to move. */
function goalsOf(
  owned: ReadonlyMap<string, readonly number[]>,
  kept: readonly string[],
): ReadonlyMap<string, number> {
  const all = [...owned.values()].reduce((sum, each) => sum + each.length, 0)
  const [share, odd] = [Math.floor(all / kept.length), all % kept.length]
  const byCount = kept.toSorted((a, b) => (owned.get(b)?.length ?? 0) - (owned.get(a)?.length ?? 0))
  return new Map(byCount.map((name, at) => [name, share + (at < odd ? 1 : 0)]))
}
