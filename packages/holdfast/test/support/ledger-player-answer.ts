import type { Verdict } from '../../src/ledger/verdict.ts'
import type { Answer, AnswerLine } from './ledger-command.ts'

export function answerOf(verdict: Verdict<number>): Answer {
  const lines = verdict.lines.map(
    ({ credited, debited, held, allowance, sequence, refusal }): AnswerLine => ({
      credited,
      debited,
      held,
      allowance,
      sequence,
      refusal: refusal as AnswerLine['refusal'],
    }),
  )
  return {
    ok: verdict.ok,
    replayed: verdict.replayed,
    reason: verdict.ok ? undefined : (verdict.reason as Answer['reason']),
    field: verdict.ok ? undefined : verdict.field,
    state: verdict.ok ? undefined : (verdict.state as Answer['state']),
    lines,
    ...(!verdict.ok &&
      verdict.spendable !== verdict.available && { apart: verdict.available - verdict.spendable }),
  }
}

/** In milliseconds. */
export function timesOf(verdict: Verdict<number>): Pick<Answer, 'at' | 'expiresAt' | 'retryAt'> {
  return verdict.ok
    ? { at: verdict.at.getTime(), expiresAt: verdict.expiresAt?.getTime(), retryAt: undefined }
    : { at: undefined, expiresAt: undefined, retryAt: verdict.retryAt?.getTime() }
}
