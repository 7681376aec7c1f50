import type { FlowOutcome } from '../core/model.ts'
import { readJson } from '../core/read-json.ts'
import type { FinalState } from './final-state.ts'
import { maskClock, type Span } from './chance.ts'

type Keys = Pick<FinalState, 'keyOf'>

/** An outcome as text to compare, with values of chance replaced by words. */
export function outcomeText(outcome: FlowOutcome, keys: Keys, span: Span): string {
  if (outcome.kind === 'returned') return `returned ${maskValue(outcome.value, keys, span)}`
  if (outcome.kind !== 'threw') return outcome.kind
  const { name, sqlstate = '', message } = outcome
  return `threw ${name} ${sqlstate} ${maskClock(message, span)}`
}

function maskValue(text: string, keys: Keys, span: Span): string {
  const value = readJson(text)
  return value === undefined
    ? maskClock(text, span)
    : JSON.stringify(masked(value, { name: '', beside: [] }, keys, span))
}

/** What the answer calls a value, and what stands beside it. */
interface Place {
  readonly name: string
  readonly beside: readonly string[]
}

/**
 * A number is taken for a key only if it is one that was drawn and stands where keys stand: alone, or
 * under a name that ends in `id`. Elsewhere it may be a count, which must be compared.
 */
function masked(value: unknown, place: Place, keys: Keys, span: Span): unknown {
  if (Array.isArray(value)) return value.map((item) => masked(item, place, keys, span))
  if (typeof value === 'object' && value !== null) {
    const beside = Object.keys(value)
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        masked(item, { name, beside }, keys, span),
      ]),
    )
  }
  if (typeof value !== 'string' && typeof value !== 'number') return value
  const text = String(value)
  const { name, beside } = place
  const key = name === '' || /id$/i.test(name) ? keys.keyOf(text, name, beside) : undefined
  if (key !== undefined) return key
  // The body of an answer that was read as a text.
  const inside = /^[[{]/.test(text) ? readJson(text) : undefined
  if (inside !== undefined) return masked(inside, place, keys, span)
  return maskClock(withPaths(text, keys), span)
}

/** `/orders/3` */
function withPaths(text: string, keys: Keys): string {
  return text.replaceAll(
    /\/([a-z][\w-]*)\/([\w-]+)(?![\w-])/gi,
    (path, name: string, id: string) => {
      const key = keys.keyOf(id, name.replace(/s$/, ''), [])
      return key === undefined ? path : `/${name}/${key}`
    },
  )
}
