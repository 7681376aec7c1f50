import type { LedgerKind, LedgerOperationEvent, LedgerTally } from '../../core/events/event-map.ts'
import { bucketOf, channels, latencyBoundsMs } from '../../core/events.ts'
import { reasonOf } from '../../core/errors/reason-of.ts'
import { type LineAnswer, statuses } from './answer.ts'
import { kinds } from '../operation.ts'
import { refusalIn } from '../verdict.ts'

const { ledgerBatch, ledgerOperation } = channels

/** An operation as far as events are concerned. */
export interface Told {
  readonly about: {
    readonly operationId?: string | undefined
    readonly book: string
    readonly lines: readonly { readonly kind: number; readonly key?: string | undefined }[]
  }
  /** When it was asked for; 0 if nobody listened then. */
  readonly since: number
}

/** When a call began, or 0 if nobody would hear of it. */
export function heardSince(): number {
  return ledgerBatch.hasSubscribers || ledgerOperation.hasSubscribers ? performance.now() : 0
}

/**
 * Tells of one statement: once for all operations in it, and of each only to those who want each.
 * An operation is at most a few additions, so that thousands in a second can be counted.
 */
export function tellAnswered(
  batch: readonly Told[],
  answers: readonly (readonly LineAnswer[])[],
  sentAt: number,
  joined: boolean,
): void {
  if (sentAt === 0) return
  const now = performance.now()
  const tallies = new Tallies(joined)
  let leftOut = 0
  for (let at = 0; at < batch.length; at += 1) {
    const { about, since } = batch[at] as Told
    const answer = answers[at]
    if (answer === undefined || answer.length === 0) {
      leftOut += 1
      continue
    }
    const tookMs = now - (since === 0 ? sentAt : since)
    const [first] = answer
    if (answer.length === 1 && first?.status === statuses.accepted) {
      tallies.add(about, 'accepted', '', tookMs)
    } else {
      const reason = refusalIn(answer)
      tallies.add(about, reason === undefined ? replayedOrNot(answer) : 'refused', reason, tookMs)
    }
  }
  tell(tallies, batch.length, now - sentAt, joined, leftOut)
}

/** The same of a statement whose lines were applied or left out. */
export function tellApplied(
  batch: readonly Told[],
  isApplied: (at: number) => boolean,
  sentAt: number,
): void {
  if (sentAt === 0) return
  const now = performance.now()
  const tallies = new Tallies(false)
  let leftOut = 0
  for (let at = 0; at < batch.length; at += 1) {
    const { about, since } = batch[at] as Told
    if (isApplied(at)) tallies.add(about, 'accepted', '', now - (since === 0 ? sentAt : since))
    else leftOut += 1
  }
  tell(tallies, batch.length, now - sentAt, false, leftOut)
}

/** Tells of operations that nobody got an answer to. */
export function tellFailed(
  batch: readonly Told[],
  error: unknown,
  sentAt: number,
  joined: boolean,
): void {
  if (sentAt === 0) return
  const now = performance.now()
  const reason = reasonOf(error)
  const tallies = new Tallies(joined)
  for (const { about, since } of batch) {
    tallies.add(about, 'failed', reason, now - (since === 0 ? sentAt : since))
  }
  tell(tallies, batch.length, now - sentAt, joined, 0)
}

function tell(
  { list }: Tallies,
  operations: number,
  durationMs: number,
  joined: boolean,
  leftOut: number,
): void {
  if (!ledgerBatch.hasSubscribers) return
  ledgerBatch.publish({ operations, durationMs, joined, leftOut, tallies: list })
}

function replayedOrNot(answers: readonly LineAnswer[]): 'accepted' | 'replayed' {
  return answers.some(({ status }) => status === statuses.replayed) ? 'replayed' : 'accepted'
}

/** The word for a kind. */
export function kindName(kind: number | undefined): LedgerKind | undefined {
  return kindNames[kind ?? 0]
}

const kindNames: Readonly<Record<number, LedgerKind>> = Object.fromEntries(
  Object.entries(kinds).map(([name, number]) => [number, name as LedgerKind]),
)

interface Tally extends LedgerTally {
  count: number
  sumMs: number
  maxMs: number
  readonly buckets: number[]
}

class Tallies {
  readonly list: Tally[] = []
  readonly #joined: boolean
  /** What the one before was counted under, which the next one nearly always is too. */
  #last: Tally | undefined
  #lastKind = 0

  constructor(joined: boolean) {
    this.#joined = joined
  }

  add(
    { operationId, book, lines }: Told['about'],
    outcome: LedgerTally['outcome'],
    reason: string | undefined,
    tookMs: number,
  ): void {
    const kind = lines[0]?.kind ?? 0
    const why = reason ?? ''
    let tally = this.#last
    if (
      tally === undefined ||
      this.#lastKind !== kind ||
      tally.outcome !== outcome ||
      tally.book !== book ||
      tally.reason !== why
    ) {
      tally = this.#find(book, kindNames[kind] ?? 'adjust', outcome, why)
      this.#last = tally
      this.#lastKind = kind
    }
    tally.count += 1
    tally.sumMs += tookMs
    if (tookMs > tally.maxMs) tally.maxMs = tookMs
    const bucket = bucketOf(tookMs)
    tally.buckets[bucket] = (tally.buckets[bucket] as number) + 1
    if (ledgerOperation.hasSubscribers) {
      const event: LedgerOperationEvent = {
        book,
        key: lines[0]?.key,
        operationId,
        kind: tally.kind,
        outcome,
        reason: why,
        durationMs: tookMs,
        joined: this.#joined,
      }
      ledgerOperation.publish(event)
    }
  }

  #find(book: string, kind: LedgerKind, outcome: LedgerTally['outcome'], reason: string): Tally {
    const known = this.list.find(
      (each) =>
        each.book === book &&
        each.kind === kind &&
        each.outcome === outcome &&
        each.reason === reason,
    )
    if (known !== undefined) return known
    const buckets = Array.from({ length: latencyBoundsMs.length + 1 }, () => 0)
    const made = { book, kind, outcome, reason, count: 0, sumMs: 0, maxMs: 0, buckets }
    this.list.push(made)
    return made
  }
}
