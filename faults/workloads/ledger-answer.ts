import type { Verdict } from '../../packages/holdfast/src/index.ts'

/** What one line of an operation was told about its account. */
export interface LineAnswer {
  readonly key: string | undefined
  readonly refusal: string | undefined
  readonly sequence: number
  readonly credited: number
  readonly debited: number
  readonly held: number
  readonly allowance: number
}

/** A verdict as histories keep it. */
export interface LedgerAnswer {
  readonly replayed: boolean
  readonly reason?: string
  readonly holdId?: string
  readonly lines: readonly LineAnswer[]
}

/** One line as it was asked for: what moves, in movements of the ledger. */
export interface LineAsked {
  readonly book: string
  readonly key: string
  readonly amount: number
}

/** What an operation with an id asked for. */
export interface LedgerAsked {
  readonly lines: readonly LineAsked[]
}

/** What ends a hold: keyed by the hold, so it needs no id of its own. */
export interface EndAsked {
  readonly holdId: string
  /** What is to be charged; the rest is given back. */
  readonly charge: number
  /** How many accounts have a part in it. */
  readonly lines: number
}

export function answerOf(verdict: Verdict<number>): {
  readonly outcome: 'ok' | 'refused'
  readonly value: LedgerAnswer
} {
  const lines = verdict.lines.map(
    ({ key, refusal, sequence, credited, debited, held, allowance }) => ({
      key,
      refusal,
      sequence,
      credited,
      debited,
      held,
      allowance,
    }),
  )
  const { replayed } = verdict
  if (!verdict.ok) {
    return { outcome: 'refused', value: { replayed, reason: verdict.reason, lines } }
  }
  const { holdId } = verdict
  return { outcome: 'ok', value: { replayed, ...(holdId === undefined ? {} : { holdId }), lines } }
}
