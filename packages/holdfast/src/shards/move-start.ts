import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { MoveFacts } from '../engines/postgres/shards/moves.ts'
import { type MoveEnds, type MoveOutcome, type MoveTerms, runMove, undoMove } from './move-run.ts'
import { assertRights, tasksOf } from './move-rights.ts'
import { assertMovable } from './move-shape.ts'

/**
 * Looks at both ends of a move, then runs it. Whatever a server has against it before the first row is copied undoes it, and is a
 * refusal. A server that is gone is none: what it has written down is there when it comes back.
 *
 * @throws SHARD_MOVE_REFUSED, and as `runMove`
 */
export async function startMove<Tx>(
  ends: MoveEnds<Tx>,
  facts: MoveFacts,
  terms: MoveTerms,
): Promise<MoveOutcome> {
  let isCopying = false
  let ofCaller: unknown
  const onProgress: MoveTerms['onProgress'] = async (progress) => {
    isCopying ||= progress.step === 'subscribed'
    try {
      await terms.onProgress(progress)
    } catch (error) {
      ofCaller = error
      throw error
    }
  }
  try {
    await assertMovable(ends, facts)
    await assertRights(tasksOf(ends, 'begin'), facts.tables)
    return await runMove(ends, facts, { ...terms, onProgress })
  } catch (error) {
    if (error === ofCaller) throw error
    const refusal = refusalOf(error, isCopying)
    if (refusal === undefined) throw error
    // If not even that can be done, it is still open, and that it was refused not the whole truth.
    await putBack(ends, facts, terms).catch(() => {
      throw error
    })
    throw refusal
  }
}

function refusalOf(error: unknown, isCopying: boolean): Error | undefined {
  if (isHoldfastError(error, 'SHARD_MOVE_REFUSED')) return error
  if (isCopying) return undefined
  const isUnreachable = isHoldfastError(error, 'SHARD_MOVE_STALLED')
  if (!isUnreachable && (isHoldfastError(error) || sqlStateOf(error) === undefined))
    return undefined
  const subject =
    (isUnreachable ? error.details.subject : undefined) ?? 'a server would not do a step of it'
  return holdfastError('SHARD_MOVE_REFUSED', { details: { subject }, cause: error })
}

/** A target that has not written it down has nothing of it, and may be none that would. */
async function putBack<Tx>(ends: MoveEnds<Tx>, facts: MoveFacts, terms: MoveTerms): Promise<void> {
  const { source, target } = ends
  if ((await target.journal(facts.id)) !== undefined) {
    await undoMove(ends, facts, terms)
    return
  }
  if ((await source.journal(facts.id))?.step !== 'copying') return
  await source.step('undo_move', facts.id)
  await source.step('end_move', facts.id)
}
