import type { Fact, Facts, JoinedText, PerhapsKey, RowKey } from '../core/facts.ts'
import type { FlowOutcome } from '../core/model.ts'
import { readJson } from '../core/read-json.ts'

/** Which rows a value may be the key of. */
export interface KeysFound {
  readonly keys: PerhapsKey['keys']
  /** It is one: its name says of which table, or nobody writes such a value. */
  readonly certain: boolean
}

/**
 * Looks for keys that were drawn during the run. `name` is what the answer calls the value, and `beside` what else is
 * in the same object.
 */
export type FindKeys = (value: string, name: string, beside: readonly string[]) => KeysFound

/** How a flow ended, with the keys of rows that are in what it said. */
export function endFact(outcome: FlowOutcome, find: FindKeys): Fact {
  if (outcome.kind === 'returned') {
    const value = readJson(outcome.value)
    return value === undefined ? outcome.value : valueFact(value, nowhere, find)
  }
  if (outcome.kind !== 'threw') return said(outcome.kind, null)
  const { sqlstate, name, message } = outcome
  return sqlstate === undefined ? said(`threw ${name}`, message) : said('threw', sqlstate)
}

/** What no flow returns. */
function said(what: string, more: Fact): Facts['ends'][number] {
  return { kind: 'object', entries: [[`‹${what}›`, more]] }
}

/** What an answer calls a value, and what stands beside it. */
interface Place {
  readonly name: string
  readonly beside: readonly string[]
}

export const nowhere: Place = { name: '', beside: [] }

/**
 * A number is taken for a key only if it is one that was drawn and stands where keys stand: alone, or
 * under a name that ends in `id`. Elsewhere it may be a count, which must be compared.
 */
export function valueFact(value: unknown, place: Place, find: FindKeys): Fact {
  if (Array.isArray(value)) return value.map((item) => valueFact(item, place, find))
  if (typeof value === 'object' && value !== null) {
    const beside = Object.keys(value)
    return {
      kind: 'object',
      entries: Object.entries(value).map(
        ([name, item]) => [name, valueFact(item, { name, beside }, find)] as const,
      ),
    }
  }
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string' && typeof value !== 'number') return null
  const { name, beside } = place
  if (name === '' || /id$/i.test(name)) {
    const key = keyFact(value, find(String(value), name, beside))
    if (key) return key
  }
  if (typeof value === 'number') return value
  // The body of an answer that was read as a text.
  const inside = /^\s*[[{]/.test(value) ? readJson(value) : undefined
  return inside === undefined ? withPaths(value, find) : valueFact(inside, place, find)
}

function keyFact(
  literal: string | number,
  { keys, certain }: KeysFound,
): RowKey | PerhapsKey | undefined {
  const [key] = keys
  return certain && keys.length === 1 ? key : key && { kind: 'perhaps', literal, keys }
}

/** `/orders/3` */
function withPaths(text: string, find: FindKeys): string | JoinedText {
  const parts: (string | RowKey | PerhapsKey)[] = []
  let from = 0
  for (const found of text.matchAll(/(\/([a-z][\w-]*)\/)([\w-]+)(?![\w-])/gi)) {
    const [, before = '', name = '', id = ''] = found
    const key = keyFact(id, find(id, name.replace(/s$/, ''), []))
    if (key === undefined) continue
    const at = found.index + before.length
    parts.push(text.slice(from, at), key)
    from = at + id.length
  }
  return parts.length === 0 ? text : { kind: 'text', parts: [...parts, text.slice(from)] }
}
