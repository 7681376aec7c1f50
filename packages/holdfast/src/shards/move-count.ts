import { holdfastError } from '../core/errors.ts'
import { moveStep } from '../engines/postgres/shards/moves.ts'
import type { MoveSide } from './move-side.ts'

/** How many rows a server has in the buckets of a move, by table and bucket, as JSON. */
export async function countRows<Tx>(side: MoveSide<Tx>, id: string): Promise<string> {
  return (await side.ask(moveStep(side.schema, 'count_move', id))) ?? '{}'
}

/**
 * Counts before anybody has to wait for it, at both ends at once. Pages that were on disk are in memory afterwards, so
 * what takes too long is done once more.
 *
 * @throws SHARD_MOVE_REFUSED if it takes more than half of the pause: the rest would not be done in the other half
 */
export async function rehearseCount<Tx>(
  sides: readonly MoveSide<Tx>[],
  id: string,
  pauseMs: number,
): Promise<void> {
  const count = async (): Promise<number> => {
    const since = performance.now()
    await Promise.all(sides.map((side) => countRows(side, id)))
    return performance.now() - since
  }
  if ((await count()) <= pauseMs / 2) return
  const ms = await count()
  if (ms <= pauseMs / 2) return
  const subject = `counting its rows takes ${Math.ceil(ms)} ms, and pause is ${pauseMs} ms: move fewer buckets at once, or allow a longer pause`
  throw holdfastError('SHARD_MOVE_REFUSED', { details: { subject } })
}
