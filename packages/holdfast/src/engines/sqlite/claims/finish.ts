import type { FinishItem, FinishState, FinishVerb } from '../../../claims/engine.ts'
import type { Executor, Statement, Value } from '../../../core/driver.ts'
import { affectedBy } from '../driver.ts'
import {
  type Assigned,
  assigned,
  columnOf,
  equals,
  inStatus,
  isKey,
  keyTexts,
  type LeaseLayout,
  tableOf,
  type TakingLayout,
  updateText,
  valueText,
} from './layout.ts'
import { isPast, momentIn, momentLike } from './moments.ts'

/** Whether the row has had all its attempts. */
function isSpent({ attempts, dead, maxAttempts }: LeaseLayout): string {
  if (attempts === undefined || dead === undefined) return '0'
  const most = typeof maxAttempts === 'number' ? String(maxAttempts) : columnOf(maxAttempts.column)
  return `COALESCE(${columnOf(attempts)} >= ${most}, 0)`
}

function deadOrPending(layout: LeaseLayout): readonly Assigned[] {
  const { dead, pending, status, attempts } = layout
  if (dead === undefined || attempts === undefined) return assigned(status, valueText(pending))
  return assigned(status, `IIF(${isSpent(layout)}, ${valueText(dead)}, ${valueText(pending)})`)
}

function free({ token, leaseUntil }: LeaseLayout): readonly Assigned[] {
  return [...assigned(token, 'NULL'), ...assigned(leaseUntil, 'NULL')]
}

function changes(
  layout: LeaseLayout,
  verb: FinishVerb,
  { delayMs = 0, error }: FinishItem,
  leaseMs: number,
): readonly Assigned[] {
  const { leaseUntil, attempts, runAt, finishedAt, kindOf } = layout
  switch (verb) {
    case 'heartbeat':
      return assigned(leaseUntil, momentIn(kindOf(leaseUntil), leaseMs))
    case 'complete':
      // The token stays: whoever asks again with it is told that it is done.
      return [
        ...assigned(layout.status, valueText(layout.done ?? null)),
        ...assigned(leaseUntil, 'NULL'),
        ...(finishedAt === undefined ? [] : assigned(finishedAt, momentIn(kindOf(finishedAt), 0))),
      ]
    case 'release':
      return [
        ...assigned(layout.status, valueText(layout.pending)),
        ...free(layout),
        ...(attempts === undefined
          ? []
          : assigned(attempts, `MAX(COALESCE(${columnOf(attempts)}, 0) - 1, 0)`)),
      ]
    case 'fail':
      return [
        ...deadOrPending(layout),
        ...free(layout),
        ...assigned(layout.error, { text: '?', values: [error ?? null] }),
        ...(runAt === undefined ? [] : assigned(runAt, retryAt(layout, runAt, delayMs))),
      ]
  }
}

function retryAt(
  layout: LeaseLayout,
  runAt: string,
  delayMs: number,
): { readonly text: string; readonly values: readonly Value[] } {
  const column = columnOf(runAt)
  const { text, values } = momentLike(column, layout.kindOf(runAt), delayMs)
  return { text: `IIF(${isSpent(layout)}, ${column}, ${text})`, values }
}

/** Finishes one row, if its token fits. */
export async function finishRow(
  on: Executor,
  layout: LeaseLayout,
  verb: FinishVerb,
  item: FinishItem,
  leaseMs: number,
): Promise<FinishState> {
  const mine = `${isKey(layout)} AND ${columnOf(layout.token)} = ?`
  const held = `${mine} AND ${inStatus(layout, layout.claimed)}`
  const values = [...item.key, item.token]
  if (verb === 'complete' && layout.done === undefined) {
    const deleted = await on.query({
      text: `DELETE FROM ${tableOf(layout)} WHERE ${held}`,
      values,
    })
    return affectedBy(deleted) > 0 ? 'kept' : 'lost'
  }
  const sets = changes(layout, verb, item, leaseMs)
  if (verb === 'fail') {
    // As the row was: RETURNING would show it after its triggers.
    const [row] = await on.query({
      text: `SELECT ${isSpent(layout)} AS spent FROM ${tableOf(layout)} WHERE ${held}`,
      values,
    })
    if (affectedBy(await on.query(updateText(layout, sets, held, values))) === 0) return 'lost'
    return Number(row?.['spent']) > 0 ? 'dead' : 'kept'
  }
  if (affectedBy(await on.query(updateText(layout, sets, held, values))) > 0) return 'kept'
  const { done } = layout
  if (verb !== 'complete' || done === undefined || done === null) return 'lost'
  // Done already, by a call whose answer was lost.
  const text = `SELECT 1 FROM ${tableOf(layout)} WHERE ${mine} AND ${equals(layout.status, done)}`
  return (await on.query({ text, values })).length > 0 ? 'kept' : 'lost'
}

function isStale(layout: LeaseLayout): string {
  const { claimed, leaseUntil, kindOf } = layout
  return `${inStatus(layout, claimed)} AND ${isPast(columnOf(leaseUntil), kindOf(leaseUntil))}`
}

/** Keys of rows whose lease is over, the oldest first, and whether they have had all their attempts. */
export function staleRows(layout: LeaseLayout, limit: number): Statement {
  const text = `SELECT ${keyTexts(layout.key)}, ${isSpent(layout)} AS spent FROM ${tableOf(layout)}
WHERE ${isStale(layout)} ORDER BY ${columnOf(layout.leaseUntil)} LIMIT ?`
  return { text, values: [limit] }
}

/** Gives a row back whose lease is over, in the place it had: nothing that it is ordered by is written. */
export function recoverRow(layout: LeaseLayout, key: readonly string[]): Statement {
  const sets = [
    ...deadOrPending(layout),
    ...free(layout),
    ...assigned(layout.error, `'lease expired'`),
  ]
  return updateText(layout, sets, `${isKey(layout)} AND ${isStale(layout)}`, key)
}

/** A row that this transaction has taken is done. Nobody else writes, so nothing has to be fenced. */
export function finishTaken(layout: TakingLayout, key: readonly string[]): Statement {
  const condition = `${isKey(layout)} AND ${inStatus(layout, layout.pending)}`
  const { done, status, finishedAt, kindOf } = layout
  if (done === undefined)
    return { text: `DELETE FROM ${tableOf(layout)} WHERE ${condition}`, values: key }
  const sets = [
    ...assigned(status, valueText(done)),
    ...(finishedAt === undefined ? [] : assigned(finishedAt, momentIn(kindOf(finishedAt), 0))),
  ]
  return updateText(layout, sets, condition, key)
}
