import { holdfastError } from '../core/errors.ts'
import { moveRights, type MovePart } from '../engines/postgres/shards/moves.ts'
import type { MoveEnds } from './move-run.ts'
import { type MoveSide, ofPrimary } from './move-side.ts'

/** What a role is to do at one primary. */
interface Task<Tx> {
  readonly side: MoveSide<Tx>
  readonly parts: readonly MovePart[]
  readonly connection?: string
}

/** What somebody needs who begins a move, goes on with one, or undoes it. */
export function tasksOf<Tx>(
  { source, target, connection }: MoveEnds<Tx>,
  what: 'begin' | 'resume' | 'undo',
): readonly Task<Tx>[] {
  if (what === 'undo') {
    return [
      { side: source, parts: ['keep'] },
      { side: target, parts: ['delete'] },
    ]
  }
  return [
    { side: source, parts: ['publish', what === 'begin' ? 'slot' : 'keep', 'delete'] },
    { side: target, parts: ['receive', 'delete'], connection },
  ]
}

/**
 * Before anything is written: a move that stops half-way for want of a right could not be undone without it either.
 *
 * @throws SHARD_MOVE_REFUSED with everything that is missing, at all of them; SHARD_PRIMARY_NEEDED
 */
export async function assertRights<Tx>(
  tasks: readonly Task<Tx>[],
  tables: readonly string[] = [],
): Promise<void> {
  const missing = await Promise.all(
    tasks.map(async ({ side, parts, connection = '' }) => {
      const asking = side.look(moveRights(side.schema, parts, tables, connection))
      const answer = await ofPrimary(side.name, asking)
      return (JSON.parse(answer ?? '[]') as string[]).map((each) => `${side.name}: ${each}`)
    }),
  )
  const subject = missing.flat().join('; ')
  if (subject !== '') throw holdfastError('SHARD_MOVE_REFUSED', { details: { subject } })
}
