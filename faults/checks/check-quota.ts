import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import type { LedgerAnswer, LedgerAsked, LineAsked } from '../workloads/ledger-answer.ts'
import { checkKeys } from './check-keys.ts'
import { checkMovements, checkOperations, type Movement } from './check-ledger.ts'
import type { Event, Sequential } from './check-linearizable.ts'
import { Findings } from './findings.ts'

/** The book whose answers are also searched for an order, and its limit. */
export interface Searched {
  readonly name: string
  readonly limit: number
}

/** Quotas: never above the limit, and the answers of each key explain each other. */
export function checkQuota(
  operations: readonly Operation[],
  movements: readonly Movement[],
  searched: Searched,
): Violation[] {
  const findings = new Findings('quota')
  checkMovements(findings, movements)
  checkOperations(findings, operations, movements)
  checkKeys(findings, eventsOf(operations, movements, searched.name), usedOf(searched.limit))
  return findings.violations
}

interface Use {
  /** Less than nothing gives back. */
  readonly by: number
  readonly refused: boolean
}

/** One event per id that was booked, and one per refusal. */
function eventsOf(
  operations: readonly Operation[],
  movements: readonly Movement[],
  book: string,
): Map<string, Event<Use>[]> {
  const booked = new Set(movements.map(({ operationId }) => operationId))
  const own = operations.filter(({ asked }) => lineOf(asked).book === book)
  const events = [...grouped(own, ({ id }) => id)].flatMap(([id, attempts]) => [
    ...attempts.flatMap((attempt) => refusal(attempt)),
    ...(booked.has(id) ? [booking(attempts)] : []),
  ])
  return new Map(
    [...grouped(events, ({ key }) => key)].map(([key, some]) => [
      key,
      some.map(({ event }) => event),
    ]),
  )
}

interface KeyEvent {
  readonly key: string
  readonly event: Event<Use>
}

function refusal({ key, asked, answered, outcome, began, ended, attempt }: Operation): KeyEvent[] {
  if (outcome !== 'refused' || (answered as LedgerAnswer).reason !== 'insufficient') return []
  const { amount } = lineOf(asked)
  const name = `${attempt} refused ${amount}`
  return [{ key, event: { began, ended, step: { by: amount, refused: true }, name } }]
}

/**
 * When it was booked: during the attempt that was told that it was new; if none was, between the first that
 * may have done it and the first that was told that it is done.
 */
function booking(attempts: readonly Operation[]): KeyEvent {
  const accepted = attempts.filter(({ outcome }) => outcome === 'ok')
  const fresh = accepted.find(({ answered }) => !(answered as LedgerAnswer).replayed)
  const [first] = attempts as [Operation, ...Operation[]]
  const { amount } = lineOf(first.asked)
  const by = first.operation === 'refund' ? -amount : amount
  return {
    key: first.key,
    event: {
      began: fresh?.began ?? Math.min(...attempts.map(({ began }) => began)),
      ended: fresh?.ended ?? Math.min(Number.POSITIVE_INFINITY, ...accepted.map((a) => a.ended)),
      step: { by, refused: false },
      name: `${first.attempt} ${first.operation} ${amount}`,
    },
  }
}

function lineOf(asked: unknown): LineAsked {
  const [line] = (asked as LedgerAsked).lines
  if (line === undefined) throw new Error('an operation without lines')
  return line
}

function usedOf(limit: number): Sequential<number, Use> {
  return {
    initial: 0,
    next(used, { by, refused }) {
      const fits = used + by <= limit
      if (refused) return fits ? undefined : used
      return fits ? used + by : undefined
    },
    nameOf: String,
  }
}
