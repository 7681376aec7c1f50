import { type Fact, isList, type Span } from '../../core/facts.ts'
import type { FlowOutcome } from '../../core/model.ts'
import { maskClock } from '../state/chance.ts'

/** An outcome as text, with values of chance replaced by words. */
export function outcomeText(outcome: FlowOutcome, end: Fact, span: Span): string {
  if (outcome.kind === 'returned') return `returned ${JSON.stringify(masked(end, span))}`
  if (outcome.kind !== 'threw') return outcome.kind
  const { name, sqlstate = '', message } = outcome
  return `threw ${name} ${sqlstate} ${maskClock(message, span)}`
}

function masked(fact: Fact, span: Span): unknown {
  if (typeof fact === 'string') return maskClock(fact, span)
  if (typeof fact === 'number') {
    const text = maskClock(String(fact), span)
    return text === String(fact) ? fact : text
  }
  if (typeof fact !== 'object' || fact === null) return fact
  if (isList(fact)) return fact.map((item) => masked(item, span))
  if (fact.kind === 'key') return fact.shown
  if (fact.kind === 'perhaps') return fact.keys.map(({ shown }) => shown).join(' ')
  if (fact.kind === 'text') return fact.parts.map((part) => String(masked(part, span))).join('')
  return Object.fromEntries(fact.entries.map(([name, value]) => [name, masked(value, span)]))
}
