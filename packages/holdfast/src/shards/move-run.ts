import { pause } from '../core/backoff.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import {
  clearMove,
  closeSlot,
  expectRows,
  type MoveFacts,
  moveStep,
  openMove,
  refuseMove,
  subscribeMove,
  takeMove,
} from '../engines/postgres/shards/moves.ts'
import { countRows, rehearseCount } from './move-count.ts'
import { untilNoneIsOld, untilOlderEnded } from './move-older.ts'
import type { MoveJournal, MoveSide } from './move-side.ts'
import { peerConnection } from './peer-connection.ts'
import type { Blocker } from '../core/events/event-map.ts'

/** What a move has just done, or is at. */
export type MoveStep =
  | 'opened'
  | 'expected'
  | 'published'
  | 'kept'
  | 'cleared'
  | 'subscribed'
  | 'copying'
  | 'copied'
  | 'waiting'
  | 'marked'
  | 'quiet'
  | 'ended'
  | 'arrived'
  | 'counted'
  | 'taken'
  | 'handed over'
  | 'refused'
  | 'unmarked'
  | 'closed'
  | 'clearing'
  | 'done'
  | 'undone'

/** Told while buckets move. The move goes on when what it returns has resolved. */
export interface MoveProgress {
  readonly id: string
  readonly step: MoveStep
  /** Tables that are there, of how many. */
  readonly tables?: readonly [ready: number, of: number]
  /** Bytes of WAL that the target is behind. */
  readonly behindBytes?: number
  /** Rows that were deleted where they are no longer needed. */
  readonly rows?: number
  /** Who is waited for. */
  readonly blockers?: readonly Blocker[]
}

type Told = (step: MoveStep, more?: Partial<MoveProgress>) => Promise<void>

/** How a move is run. */
export interface MoveTerms {
  /** The longest that operations in the buckets may have to wait, in milliseconds. */
  readonly pauseMs: number
  /** How long transactions that are older than that pause are waited for before it begins. */
  readonly waitMs: number
  readonly onProgress: (progress: MoveProgress) => void | Promise<void>
}

/** The two servers, and how the target reaches the source. */
export interface MoveEnds<Tx> {
  readonly source: MoveSide<Tx>
  readonly target: MoveSide<Tx>
  readonly connection: string
}

function tellerOf({ onProgress }: MoveTerms, id: string): Told {
  return async (step, more = {}) => {
    await onProgress({ id, step, ...more })
  }
}

/** How a move ended. */
export interface MoveOutcome {
  readonly id: string
  readonly buckets: readonly number[]
  readonly from: string
  readonly to: string
  readonly moved: boolean
  /** It had ended before, and nothing was left to do. */
  readonly already: boolean
  /** For how long nobody could work in the buckets; of a move that was resumed, since then. */
  readonly pausedMs: number | undefined
}

/** A look reads catalogues, which is not for nothing: rarely while rows are copied, often while others wait. */
const [copyingEveryMs, lookEveryMs] = [100, 10]
const rowsAtOnce = 5_000
/** Failures in a row without a table more. */
const mostFailures = 5

/**
 * Brings a move to its end from wherever it is: what each server has written down says what comes next. Any
 * number of processes may do so at once; each step is a transaction that looks at the journal first.
 */
export async function runMove<Tx>(
  ends: MoveEnds<Tx>,
  facts: MoveFacts,
  terms: MoveTerms,
): Promise<MoveOutcome> {
  const { source, target } = ends
  const { id } = facts
  const told = tellerOf(terms, id)
  const outcome = { id, buckets: facts.buckets, from: facts.source, to: facts.target }
  let pausedSince: number | undefined
  await source.ask(openMove(source.schema, facts))
  await told('opened')

  if ((await known(source, id)).step === 'copying') {
    const there = await target.ask(openMove(target.schema, facts))
    await told('expected')
    if (there === 'copying') {
      const inTheWay = await copy(ends, id, terms, told)
      if (inTheWay.length > 0) throw await giveUp(ends, facts, terms, inTheWay)
      await source.step('mark_leaving', id)
      pausedSince = performance.now()
      await told('marked')
    }
  }
  if (
    (await known(source, id)).step === 'leaving' &&
    (await known(target, id)).step === 'copying'
  ) {
    pausedSince ??= performance.now()
    const inTheWay = await bringOver(ends, id, pausedSince + terms.pauseMs, told).catch(
      async (error: unknown) => {
        // Everybody waits, and it would be the same again.
        if (isHoldfastError(error, 'SHARD_MOVE_INCOMPLETE')) await undoMove(ends, facts, terms)
        throw error
      },
    )
    if (inTheWay !== undefined) throw await giveUp(ends, facts, terms, inTheWay)
  }
  const decided = (await known(target, id)).step
  if (decided === 'undone') {
    const already = !(await undoMove(ends, facts, terms))
    return { ...outcome, moved: false, already, pausedMs: undefined }
  }
  if (decided === 'copying') throw overtaken(target, 'it does not know of the end of this move')
  // Still copying where it came back from a backup, and the target has the buckets.
  if (['copying', 'leaving'].includes((await known(source, id)).step)) {
    await source.step('hand_over', id)
    await told('handed over')
  }
  const pausedMs = pausedSince === undefined ? undefined : performance.now() - pausedSince
  const already = !(await finish(ends, id, source, told))
  await told('done')
  return { ...outcome, moved: true, already, pausedMs }
}

/** Until the target has everything but what is written right now. Answers who is in the way of the rest. */
async function copy<Tx>(
  { source, target, connection }: MoveEnds<Tx>,
  id: string,
  { pauseMs, waitMs }: MoveTerms,
  told: Told,
): Promise<readonly Blocker[]> {
  const months = (await source.step('publish_move', id)) ?? '[]'
  await told('published')
  const kept = await source.askWithin(waitMs, moveStep(source.schema, 'open_slot', id))
  if (kept === undefined) return await untilNoneIsOld(source, 0, 0)
  await told('kept')
  if (!(await known(target, id)).subscribed) {
    await clear(target, id, told)
    await told('cleared')
    const { unfiltered } = peerConnection(connection)
    await target.ask(subscribeMove(target.schema, id, months, unfiltered))
  }
  await told('subscribed')
  await untilCopied({ source, target }, id, told)
  await told('copied')
  await rehearseCount([source, target], id, pauseMs)
  // Who would take up much of the pause is waited for before it begins, when it costs nobody anything.
  return await untilNoneIsOld(source, pauseMs / 4, waitMs, (blockers) =>
    told('waiting', { blockers }),
  )
}

async function untilCopied<Tx>(
  { source, target }: Pick<MoveEnds<Tx>, 'source' | 'target'>,
  id: string,
  told: Told,
): Promise<void> {
  let best = -1
  let failuresThen = 0
  for (;;) {
    const { step, tables, ready, failures } = await known(target, id)
    // Somebody else has undone it; the next step will say so.
    if (step !== 'copying') return
    const complete = tables > 0 && ready === tables
    if (ready > best || complete) {
      const behindBytes = (await known(source, id)).behind ?? 0
      if (ready > best) {
        best = ready
        failuresThen = failures ?? 0
        await told('copying', { tables: [ready, tables], behindBytes })
      }
      if (complete && behindBytes < closeBytes) return
    }
    if ((failures ?? 0) - failuresThen > mostFailures) throw holdfastError('SHARD_MOVE_STALLED')
    await pause(copyingEveryMs, undefined)
  }
}

/** So little is sent in a moment. */
const closeBytes = 1_000_000

/**
 * From the mark to the target having the buckets. If that takes too long, answers who is in the way. The source counts
 * its rows while the last of them are on their way.
 */
async function bringOver<Tx>(
  { source, target }: MoveEnds<Tx>,
  id: string,
  until: number,
  told: Told,
): Promise<readonly Blocker[] | undefined> {
  const left = await untilOlderEnded(source, Math.max(0, until - performance.now()))
  if (left.length > 0) return left
  await told('quiet')
  await source.step('write_end', id)
  await told('ended')
  const [counts, answer] = await Promise.all([
    countRows(source, id),
    untilArrived(target, id, until),
  ])
  if (answer === 'decided') return undefined
  if (answer === 'late' || performance.now() >= until) return []
  await told('arrived')
  const { versions } = await known(source, id)
  await target.ask(expectRows(target.schema, id, counts))
  await told('counted')
  await target.ask(takeMove(target.schema, id, versions))
  await told('taken')
  return undefined
}

async function untilArrived<Tx>(
  target: MoveSide<Tx>,
  id: string,
  until: number,
): Promise<'arrived' | 'decided' | 'late'> {
  for (;;) {
    const { arrived, step } = await known(target, id)
    if (step !== 'copying') return 'decided'
    if (arrived) return 'arrived'
    if (performance.now() >= until) return 'late'
    await pause(lookEveryMs, undefined)
  }
}

/** The error, once everything is as it was. */
async function giveUp<Tx>(
  ends: MoveEnds<Tx>,
  facts: MoveFacts,
  terms: MoveTerms,
  blockers: readonly Blocker[],
): Promise<Error> {
  await undoMove(ends, facts, terms)
  return holdfastError('SHARD_MOVE_BLOCKED', { blockers })
}

/**
 * Puts everything back as it was before the move. Answers whether there was something to do.
 *
 * @throws SHARD_MOVE_OVERTAKEN if the target has the buckets already
 */
export async function undoMove<Tx>(
  ends: MoveEnds<Tx>,
  facts: MoveFacts,
  terms: MoveTerms,
): Promise<boolean> {
  const { source, target } = ends
  const { id } = facts
  const told = tellerOf(terms, id)
  const answer = await target.ask(refuseMove(target.schema, facts))
  if (answer !== 'undone') throw overtaken(target, 'the buckets are there')
  await told('refused')
  await source.step('undo_move', id)
  await told('unmarked')
  const wasOpen = await finish(ends, id, target, told)
  await told('undone')
  return wasOpen
}

/** What is left to do when the move was decided: nobody waits for it. Answers whether that was anything. */
async function finish<Tx>(
  { source, target }: MoveEnds<Tx>,
  id: string,
  leftAt: MoveSide<Tx>,
  told: Told,
): Promise<boolean> {
  if ((await known(source, id)).ended && (await known(target, id)).ended) return false
  const { slots = null } = (await known(target, id)).detail
  while ((await source.ask(closeSlot(source.schema, id, slots))) !== 'true') {
    await pause(lookEveryMs, undefined)
  }
  await told('closed')
  // A target that never opened it has nothing of it, and what is there is something else.
  const { ended, detail } = await known(leftAt, id)
  if (!ended && detail.tables !== undefined) await clear(leftAt, id, told)
  await target.step('end_move', id)
  await source.step('end_move', id)
  return true
}

async function clear<Tx>(side: MoveSide<Tx>, id: string, told: Told): Promise<void> {
  for (let rows = 0; ; ) {
    const deleted = Number(await side.ask(clearMove(side.schema, id, rowsAtOnce)))
    rows += deleted
    if (deleted > 0) await told('clearing', { rows })
    if (deleted < rowsAtOnce) return
  }
}

function overtaken<Tx>({ name }: MoveSide<Tx>, why: string): Error {
  return holdfastError('SHARD_MOVE_OVERTAKEN', { details: { subject: `${name}: ${why}` } })
}

async function known<Tx>(side: MoveSide<Tx>, id: string): Promise<MoveJournal> {
  const journal = await side.journal(id)
  if (journal === undefined) throw holdfastError('SHARD_MOVE_UNKNOWN')
  return journal
}
