import type { FlowOutcome } from '../core/model.ts'
import type { FinalState } from './final-state.ts'
import { maskClock, newKeyWord, type Span } from './chance.ts'

type Keys = Pick<FinalState, 'drawn'>

/** An outcome as text to compare, with values of chance replaced by words. */
export function outcomeText(outcome: FlowOutcome, keys: Keys, span: Span): string {
  if (outcome.kind === 'returned') return `returned ${maskValue(outcome.value, keys, span)}`
  if (outcome.kind !== 'threw') return outcome.kind
  const { name, sqlstate = '', message } = outcome
  return `threw ${name} ${sqlstate} ${maskClock(message, span)}`
}

function maskValue(text: string, keys: Keys, span: Span): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return maskClock(text, span)
  }
  return JSON.stringify(masked(value, '', keys, span))
}

/**
 * A number is taken for a key only if it is one that was drawn and stands where keys stand: alone, or
 * under a name that ends in `id`. Elsewhere it may be a count, which must be compared.
 */
function masked(value: unknown, name: string, keys: Keys, span: Span): unknown {
  if (Array.isArray(value)) return value.map((item) => masked(item, name, keys, span))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, masked(item, key, keys, span)]),
    )
  }
  const text = String(value)
  if (typeof value === 'string' || typeof value === 'number') {
    if (keys.drawn.has(text) && (name === '' || /id$/i.test(name))) return newKeyWord
    return maskClock(text, span)
  }
  return value
}
