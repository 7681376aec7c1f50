import { grouped, type Operation } from '../history/operations-of.ts'
import type { EndAsked, LedgerAnswer } from '../workloads/ledger-answer.ts'
import { kinds, type Movement } from './check-ledger.ts'
import type { Findings } from './findings.ts'

const endingKinds: Readonly<Record<string, number>> = {
  settle: kinds.settle,
  release: kinds.release,
}

/**
 * Holds end once: settled, released or expired, whoever comes first; and whoever was told that it was him
 * finds it so.
 */
export function checkEndings(
  findings: Findings,
  operations: readonly Operation[],
  movements: readonly Movement[],
): void {
  const ended = grouped(
    movements.filter(({ kind }) => [kinds.settle, kinds.release, kinds.expiry].includes(kind as 4)),
    ({ holdId }) => holdId ?? undefined,
  )
  for (const [holdId, some] of ended) {
    for (const [, twice] of grouped(some, ({ account }) => account)) {
      if (twice.length > 1) {
        findings.add(
          'applied_twice',
          `hold ${holdId} ended ${twice.length} times on ${twice[0]?.key}`,
        )
      }
    }
  }
  const asked = operations.filter(({ operation }) => operation in endingKinds)
  for (const [name, attempts] of grouped(asked, nameOf)) {
    const [first] = attempts as [Operation, ...Operation[]]
    const { holdId, charge, lines } = first.asked as EndAsked
    const kind = endingKinds[first.operation]
    const booked = (ended.get(uuidOf(holdId)) ?? []).filter((movement) => movement.kind === kind)
    const accepted = attempts.filter(({ outcome }) => outcome === 'ok')
    const has = (outcome: Operation['outcome']): boolean =>
      attempts.some((attempt) => attempt.outcome === outcome)
    if (accepted.length > 0 && booked.length < lines) {
      findings.add(
        'acknowledged_lost',
        `${name} was acknowledged; ${booked.length} of ${lines} are there`,
      )
    }
    if (booked.length > 0 && accepted.length === 0 && !has('unknown')) {
      const rule = has('refused') ? 'refused_present' : 'failed_present'
      findings.add(
        rule,
        `${name} was booked, and was ${attempts.map((a) => a.code ?? a.outcome).join(', ')}`,
      )
    }
    const charged = booked.reduce((sum, { debit }) => sum + debit, 0)
    if (accepted.length > 0 && booked.length === lines && charged !== charge) {
      findings.add('answer_differs', `${name} charged ${charged} instead of ${charge}`)
    }
    const answers = new Set(accepted.map(({ answered }) => textOf(answered as LedgerAnswer)))
    if (answers.size > 1) findings.add('replay_differs', `${name} had ${answers.size} answers`)
  }
}

/** Holds are handed out with the bucket of their account in front. */
function uuidOf(holdId: string): string {
  return holdId.slice(holdId.indexOf('-') + 1)
}

function nameOf({ operation, asked }: Operation): string {
  return `${operation} of hold ${(asked as EndAsked).holdId}`
}

function textOf({ lines }: LedgerAnswer): string {
  return lines
    .map((line) => `${line.key}:${line.sequence}:${line.credited}:${line.debited}:${line.held}`)
    .toSorted((a, b) => a.localeCompare(b))
    .join(' ')
}
