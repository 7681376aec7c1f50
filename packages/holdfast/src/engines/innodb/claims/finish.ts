import type { FinishItem, FinishLayout, FinishVerb, TakeLayout } from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { inUtc, utcLater, utcNow } from '../sql/clock.ts'
import { inLockOrder } from '../sql/lock-order.ts'
import { type Fragment, valuesOf } from '../sql/text.ts'
import { type ClaimTable, columnOf } from './claim-table.ts'
import {
  all,
  anyOf,
  changeRows,
  fixedColumns,
  inStatus,
  leaseSpan,
  padding,
  set,
} from './claims.ts'
import { fittingText } from './fitting-text.ts'

/** Statements about rows that were claimed: looked up by key, and changed only where the token still fits. */

/** Whether the row has had all its attempts. */
function isSpent({ attempts, dead, maxAttempts }: FinishLayout): string {
  if (attempts === undefined || dead === undefined) return 'FALSE'
  const most =
    typeof maxAttempts === 'number' ? String(Math.trunc(maxAttempts)) : columnOf(maxAttempts.column)
  return `COALESCE(${columnOf(attempts)} >= ${most}, FALSE)`
}

function deadOrPending(table: ClaimTable, layout: FinishLayout): Fragment[] {
  const { status, pending, dead } = layout
  const again = table.value(status, pending)
  if (dead === undefined || layout.attempts === undefined) return set(status, again)
  const over = table.value(status, dead)
  const text = `CASE WHEN ${isSpent(layout)} THEN ${over.text} ELSE ${again.text} END`
  return set(status, { text, values: valuesOf([over, again]) })
}

/** A row that is looked up, by its place among those that were asked for. */
export interface Wanted {
  readonly at: number
  readonly row: Fragment
  readonly token: string
}

/** In the order in which everybody locks rows that are waited for. */
export function wantedRows(table: ClaimTable, items: readonly FinishItem[]): readonly Wanted[] {
  return items
    .map(({ key, token }, at) => ({ at, row: table.hasKey(key), token }))
    .sort((a, b) => inLockOrder(a.row, b.row))
}

/**
 * Looks rows up one by one, each by its whole key, so that no other row is locked: locked in their order, or those that
 * are free, or not at all. The answers are read by `statesOf`.
 */
export function lookUp(
  table: ClaimTable,
  layout: FinishLayout,
  wanted: readonly Wanted[],
  how: 'wait' | 'skip' | 'plain',
): Statement {
  const lock = { wait: ' FOR UPDATE', skip: ' FOR UPDATE SKIP LOCKED', plain: '' }[how]
  const isClaimed = table.equals(layout.status, layout.claimed)
  // The token stays where a row is done: whoever asks again with it is told so.
  const isDone =
    layout.done === undefined
      ? { text: 'FALSE', values: [] }
      : table.equals(layout.status, layout.done)
  const state = `CASE WHEN COALESCE(${columnOf(layout.token)} <> ?, TRUE) THEN 'lost'
  WHEN ${isClaimed.text} THEN IF(${isSpent(layout)}, 'spent', 'ours') WHEN ${isDone.text} THEN 'done' ELSE 'lost' END`
  const parts = padding(wanted).map(({ row, token }, place) => ({
    text: `(SELECT ${place} AS \`#place\`, ${state} AS \`#state\` FROM ${table.text} t WHERE ${row.text}${lock})`,
    values: [token, ...valuesOf([isClaimed, isDone, row])],
  }))
  return { text: parts.map(({ text }) => text).join(' UNION ALL '), values: valuesOf(parts) }
}

/** `ours` to be changed, and for the last time if it fails; `done` already. */
export type RowState = 'ours' | 'spent' | 'done' | 'lost'

/** What `lookUp` was answered, by the places of what was asked for; nothing of rows that were passed over. */
export function statesOf(
  wanted: readonly Wanted[],
  rows: readonly Row[],
): ReadonlyMap<number, RowState> {
  const found = new Map<number, RowState>()
  for (const { '#place': place, '#state': state } of rows) {
    const one = wanted[Number(place)]
    if (one !== undefined) found.set(one.at, state as RowState)
  }
  return found
}

/** Changes rows that `lookUp` has locked. Several statements where each row has values of its own. */
export function changeClaims(
  table: ClaimTable,
  layout: FinishLayout,
  verb: FinishVerb,
  items: readonly FinishItem[],
  leaseMs: number,
): readonly Statement[] {
  const ours = ({ key, token }: FinishItem): Fragment =>
    all(table.hasKey(key), { text: `${columnOf(layout.token)} = ?`, values: [token] })
  if (verb === 'fail')
    return items.map((item) => changeRows(table, failing(table, layout, item), ours(item)))
  const rows = anyOf(items.map(ours))
  if (verb === 'complete' && layout.done === undefined) return [deleteRows(table, rows)]
  return [changeRows(table, changes(table, layout, verb, leaseMs), rows)]
}

function changes(
  table: ClaimTable,
  layout: FinishLayout,
  verb: Exclude<FinishVerb, 'fail'>,
  leaseMs: number,
): readonly Fragment[] {
  const { status, token, leaseUntil, attempts } = layout
  if (verb === 'heartbeat') {
    const span = leaseSpan(table, leaseUntil, leaseMs)
    return set(leaseUntil, { text: utcLater, values: [span] })
  }
  const unleased = set(leaseUntil, 'NULL')
  if (verb === 'complete') {
    const done = set(status, table.value(status, layout.done ?? null))
    return [...done, ...unleased, ...set(layout.finishedAt, utcNow)]
  }
  // A column without a sign has nothing below 0.
  const before =
    attempts && `CASE WHEN ${columnOf(attempts)} > 0 THEN ${columnOf(attempts)} - 1 ELSE 0 END`
  return [
    ...set(status, table.value(status, layout.pending)),
    ...set(token, 'NULL'),
    ...unleased,
    ...set(attempts, before ?? 'NULL'),
  ]
}

function failing(
  table: ClaimTable,
  layout: FinishLayout,
  { delayMs = 0, error }: FinishItem,
): readonly Fragment[] {
  const { runAt } = layout
  const later = {
    text: `CASE WHEN ${isSpent(layout)} THEN ${runAt === undefined ? '' : columnOf(runAt)} ELSE ${utcLater} END`,
    values: [String(Math.round(delayMs * 1_000))],
  }
  const why =
    layout.error === undefined || error === undefined
      ? 'NULL'
      : fittingText(table, layout.error, error)
  return [
    ...deadOrPending(table, layout),
    ...set(layout.token, 'NULL'),
    ...set(layout.leaseUntil, 'NULL'),
    ...set(layout.error, why),
    ...set(runAt, later),
  ]
}

export function deleteRows(table: ClaimTable, where: Fragment): Statement {
  const text = `DELETE t FROM ${table.text} t${table.byKey} WHERE ${where.text}`
  return { text, values: where.values }
}

/** Rows that this transaction has taken; with the lock that it has already. */
export function lookUpTaken(
  table: ClaimTable,
  layout: TakeLayout,
  keys: readonly (readonly string[])[],
): Statement {
  const isPending = table.equals(layout.status, layout.pending)
  const parts = padding(keys.map((key, at) => ({ at, row: table.hasKey(key) })))
    .toSorted((a, b) => inLockOrder(a.row, b.row))
    .map(({ at, row }) => ({
      text: `(SELECT ? AS \`#at\` FROM ${table.text} t WHERE ${row.text} AND ${isPending.text} FOR UPDATE)`,
      values: [String(at), ...valuesOf([row, isPending])],
    }))
  return { text: parts.map(({ text }) => text).join(' UNION ALL '), values: valuesOf(parts) }
}

/** They are locked, so nothing has to be fenced. */
export function finishTaken(
  table: ClaimTable,
  layout: TakeLayout,
  keys: readonly (readonly string[])[],
): Statement {
  const rows = anyOf(keys.map((key) => table.hasKey(key)))
  if (layout.done === undefined) return deleteRows(table, rows)
  const sets = [
    ...set(layout.status, table.value(layout.status, layout.done)),
    ...set(layout.finishedAt, utcNow),
  ]
  return changeRows(table, sets, rows)
}

/** Rows whose lease is over, locked, but for those that somebody is about to finish; and whether they are dead. */
export function pickStale(table: ClaimTable, layout: FinishLayout, limit: number): Statement {
  const lease = columnOf(layout.leaseUntil)
  const claimed = inStatus(table, layout, layout.claimed)
  const index = table.inOrder({ fixed: fixedColumns(layout), order: [layout.leaseUntil] })
  const text = `${inUtc.before}SELECT ${inUtc.hint}${table.keyTexts()}, IF(${isSpent(layout)}, 1, 0) AS \`#dead\`
FROM ${table.text} t${index} WHERE ${claimed.text} AND ${lease} < ${utcNow}
ORDER BY ${lease} LIMIT ? FOR UPDATE SKIP LOCKED`
  return { text, values: [...claimed.values, String(limit)] }
}

/** Gives them back in the place they had: nothing that they are ordered by is written. */
export function freeRows(
  table: ClaimTable,
  layout: FinishLayout,
  keys: readonly (readonly string[])[],
): Statement {
  const sets = [
    ...deadOrPending(table, layout),
    ...set(layout.token, 'NULL'),
    ...set(layout.leaseUntil, 'NULL'),
    ...(layout.error === undefined
      ? []
      : set(layout.error, fittingText(table, layout.error, 'lease expired'))),
  ]
  return changeRows(table, sets, anyOf(keys.map((key) => table.hasKey(key))))
}
