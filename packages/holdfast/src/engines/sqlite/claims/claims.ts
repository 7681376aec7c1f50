import type { ClaimedRow, ClaimRequest } from '../../../claims/engine.ts'
import type { Executor, Row, Statement } from '../../../core/driver.ts'
import { affectedBy } from '../driver.ts'
import { nowUs, spanOf } from '../sql/clock.ts'
import {
  assigned,
  columnOf,
  hasKeyIn,
  inStatus,
  isDue,
  isKey,
  keyIn,
  keyTexts,
  type LeaseLayout,
  orderOf,
  ownIn,
  returned,
  tableOf,
  updateText,
  valueText,
  type Waiting,
} from './layout.ts'
import { momentIn } from './moments.ts'

/** Statements that claim rows of a table of the caller's. Nobody else writes to the file while they run. */

/** Whether there is something to claim; asked before the right to write is taken. */
export function anyDue(waiting: Waiting): Statement {
  return { text: `SELECT 1 FROM ${tableOf(waiting)} WHERE ${isDue(waiting)} LIMIT 1`, values: [] }
}

/** Of which rows: of all, or of those whose turn it is. */
export interface Share {
  readonly limit: number
  readonly turn?: { readonly column: string; readonly key: string }
}

/** So many rows that cannot be had are passed over in one call. */
const mostPassed = 1_000

interface Having<T> {
  /** Columns that are read of each row. */
  readonly wanted: string
  /** Whether a row that is had still stands among the next ones. */
  readonly staysDue: boolean
  have(found: Row): Promise<T | undefined>
}

/**
 * The rows that are to be had, in their order. One whose key is NULL, binary or no text that both sides know is found by
 * nobody: it is passed over, and whoever is behind it comes.
 */
async function nextOf<T>(
  on: Executor,
  waiting: Waiting,
  share: Share,
  { wanted, staysDue, have }: Having<T>,
): Promise<T[]> {
  const had: T[] = []
  let passed = 0
  while (had.length < share.limit && passed < mostPassed) {
    const limit = share.limit - had.length
    const offset = staysDue ? passed + had.length : passed
    const page = await on.query(pageOf(waiting, { ...share, limit }, wanted, offset))
    for (const found of page) {
      const one = hasKeyIn(waiting, found) ? await have(found) : undefined
      if (one === undefined) passed += 1
      else had.push(one)
    }
    if (page.length < limit) break
  }
  return had
}

function pageOf(
  waiting: Waiting,
  { limit, turn }: Share,
  wanted: string,
  offset: number,
): Statement {
  const more = turn === undefined ? '' : ` AND ${columnOf(turn.column)} = ?`
  const text = `SELECT ${wanted} FROM ${tableOf(waiting)} WHERE ${isDue(waiting)}${more} ORDER BY ${orderOf(waiting)} LIMIT ? OFFSET ?`
  return { text, values: [...(turn === undefined ? [] : [turn.key]), limit, offset] }
}

/** Writes lease and token into one row. The token is what fences everything later. */
function claimRow(
  layout: LeaseLayout,
  key: readonly string[],
  { token, holder }: Pick<ClaimRequest, 'token' | 'holder'>,
  leaseMs: number,
): Statement {
  const { attempts, leaseUntil, kindOf } = layout
  const sets = [
    ...assigned(layout.status, valueText(layout.claimed)),
    ...assigned(layout.token, { text: '?', values: [token] }),
    ...assigned(leaseUntil, momentIn(kindOf(leaseUntil), leaseMs)),
    ...(attempts === undefined ? [] : assigned(attempts, `COALESCE(${columnOf(attempts)}, 0) + 1`)),
    ...assigned(layout.holder, { text: '?', values: [holder] }),
  ]
  return updateText(layout, sets, `${isKey(layout)} AND ${isDue(layout)}`, key)
}

/** A row as its claim, and perhaps a trigger, has left it. */
function readClaimed(layout: LeaseLayout, key: readonly string[], token: string): Statement {
  const { attempts } = layout
  const wanted = [
    keyTexts(layout.key),
    `${attempts === undefined ? 'NULL' : columnOf(attempts)} AS "#attempt"`,
    ...returned(layout),
  ]
  const text = `SELECT ${wanted.join(', ')} FROM ${tableOf(layout)} WHERE ${isKey(layout)} AND ${columnOf(layout.token)} = ?`
  return { text, values: [...key, token] }
}

/** Claims one share of rows. */
export async function claimShare(
  on: Executor,
  layout: LeaseLayout,
  share: Share,
  request: ClaimRequest,
  leaseMs: number,
): Promise<ClaimedRow[]> {
  const have = async (found: Row): Promise<ClaimedRow | undefined> => {
    const key = keyIn(layout, found)
    const changed = await on.query(claimRow(layout, key, request, leaseMs))
    if (affectedBy(changed) === 0) return undefined
    const [row] = await on.query(readClaimed(layout, key, request.token))
    return row && claimedRow(layout, row)
  }
  return await nextOf(on, layout, share, { wanted: keyTexts(layout.key), staysDue: false, have })
}

/** The rows of one share as they are; the right to write to the file is the claim. */
export async function takeShare(
  on: Executor,
  waiting: Waiting,
  share: Share,
): Promise<ClaimedRow[]> {
  const wanted = [keyTexts(waiting.key), ...returned(waiting)].join(', ')
  const text = `SELECT 1 FROM ${tableOf(waiting)} WHERE ${isKey(waiting)} LIMIT 1`
  const have = async (found: Row): Promise<ClaimedRow | undefined> => {
    const taken = claimedRow(waiting, found)
    const there = await on.query({ text, values: taken.key })
    return there.length === 0 ? undefined : taken
  }
  return await nextOf(on, waiting, share, { wanted, staysDue: true, have })
}

function claimedRow(waiting: Waiting, found: Row): ClaimedRow {
  const attempt = found['#attempt']
  return {
    key: keyIn(waiting, found),
    attempt: attempt === undefined || attempt === null ? undefined : Number(attempt),
    row: ownIn(found),
  }
}

/** The next key that has something to do, behind one and up to another. */
export function nextTurn(
  waiting: Waiting,
  column: string,
  after: string | undefined,
  upTo: string | undefined,
): Statement {
  const of = columnOf(column)
  const range = [
    ...(after === undefined ? [] : [` AND ${of} > ?`]),
    ...(upTo === undefined ? [] : [` AND ${of} <= ?`]),
  ].join('')
  const text = `SELECT CAST(${of} AS TEXT) AS "#turn" FROM ${tableOf(waiting)}
WHERE ${isDue(waiting)} AND ${of} IS NOT NULL${range} ORDER BY ${of} LIMIT 1`
  return { text, values: [after, upTo].filter((each) => each !== undefined) }
}

/** How many rows of a key are in flight. */
export function inFlight(layout: LeaseLayout, column: string, key: string): Statement {
  const text = `SELECT COUNT(*) AS n FROM ${tableOf(layout)} WHERE ${inStatus(layout, layout.claimed)} AND ${columnOf(column)} = ?`
  return { text, values: [key] }
}

/** Claims of a key that still count. */
export function claimedLately(limiter: string, key: string): Statement {
  const text = `SELECT COUNT(*) AS n FROM main.holdfast_claim_rate WHERE limiter = ? AND turn = ? AND until > ${nowUs}`
  return { text, values: [limiter, key] }
}

/** Writes one down. */
export function noteClaim(limiter: string, key: string, perMs: number): Statement {
  const text = `INSERT INTO main.holdfast_claim_rate (limiter, turn, until) VALUES (?, ?, ${nowUs} + ?)`
  return { text, values: [limiter, key, spanOf(perMs)] }
}

/** Of any key, a few at a time. */
export const forgetClaims: Statement = {
  text: `DELETE FROM main.holdfast_claim_rate WHERE rowid IN (
  SELECT rowid FROM main.holdfast_claim_rate WHERE until <= ${nowUs} ORDER BY until LIMIT 100)`,
  values: [],
}

/** What limits of claims in a span of time need. */
export const claimTables: readonly Statement[] = [
  {
    text: `CREATE TABLE IF NOT EXISTS holdfast_claim_rate (
  limiter TEXT NOT NULL,
  turn TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT`,
    values: [],
  },
  {
    text: 'CREATE INDEX IF NOT EXISTS holdfast_claim_rate_turn ON holdfast_claim_rate (limiter, turn, until)',
    values: [],
  },
  {
    text: 'CREATE INDEX IF NOT EXISTS holdfast_claim_rate_until ON holdfast_claim_rate (until)',
    values: [],
  },
]
