import type { Answer, Command } from '../../packages/holdfast/test/support/ledger-command.ts'
import { same } from './ledger-model-history.ts'

/** How often each difference that is known was seen. */
export type SeenKnown = Map<string, number>

/** What the ledger is known to tell otherwise than it should. To be deleted here when it is fixed there. */
interface KnownDifference {
  readonly name: string
  /** An answer without what may differ. */
  without(command: Command, answer: Answer, modelled: Answer): Answer
}

const knownDifferences: readonly KnownDifference[] = []

/**
 * Whether two answers say the same, as far as it is promised. One of many in a call is refused by what
 * was there before the call, so that only the decision is compared; of one line alone, also when to try again.
 */
export function sameAnswer(
  seen: SeenKnown,
  command: Command,
  told: Answer,
  modelled: Answer,
  isBatch = false,
): boolean {
  const isLoose = isBatch && !told.ok && !told.replayed
  const isSame = (a: Answer, b: Answer): boolean =>
    isLoose ? same(decisionOf(a), decisionOf(b)) : same(a, b)
  if (isSame(told, modelled)) return true
  const names: string[] = []
  let [one, other] = [told, modelled]
  for (const { name, without } of knownDifferences) {
    const before = one
    one = without(command, one, modelled)
    other = without(command, other, modelled)
    if (!same(before, one)) names.push(name)
  }
  if (!isSame(one, other)) return false
  for (const name of names) seen.set(name, (seen.get(name) ?? 0) + 1)
  return true
}

function decisionOf({ ok, replayed, reason, field, state, lines, retryAt }: Answer): unknown {
  return { ok, replayed, reason, field, state, ...(lines.length === 1 && { retryAt }) }
}
