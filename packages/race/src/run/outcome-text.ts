import type { FlowOutcome } from '../core/model.ts'
import { looksDrawn, maskClock, newKeyWord, type Span } from './chance.ts'

/** An outcome as text to compare, with values of chance replaced by words. */
export function outcomeText(outcome: FlowOutcome, drawn: ReadonlySet<string>, span: Span): string {
  if (outcome.kind === 'returned') return `returned ${maskValue(outcome.value, drawn, span)}`
  if (outcome.kind !== 'threw') return outcome.kind
  const { name, sqlstate = '', message } = outcome
  return `threw ${name} ${sqlstate} ${maskClock(message, span)}`
}

function maskValue(text: string, drawn: ReadonlySet<string>, span: Span): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return maskClock(text, span)
  }
  return JSON.stringify(masked(value, '', drawn, span))
}

/**
 * A number is taken for a key only if it is one that was drawn and stands where keys stand: alone, or
 * under a name that ends in `id`. Elsewhere it may be a count, which must be compared.
 */
function masked(value: unknown, name: string, drawn: ReadonlySet<string>, span: Span): unknown {
  if (Array.isArray(value)) return value.map((item) => masked(item, name, drawn, span))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, masked(item, key, drawn, span)]),
    )
  }
  const text = String(value)
  if (typeof value === 'string' || typeof value === 'number') {
    if (drawn.has(text) && (looksDrawn(text) || name === '' || /id$/i.test(name))) return newKeyWord
    return maskClock(text, span)
  }
  return value
}
