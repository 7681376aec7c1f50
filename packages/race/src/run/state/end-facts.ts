import type { Fact, Facts, JoinedText, PerhapsKey, RowKey } from '../../core/facts.ts'
import type { FlowOutcome, Note, Step } from '../../core/model.ts'
import { readJson } from '../../core/read-json.ts'
import { isTag } from '../../core/tag.ts'
import { seenIn } from '../answer/outcome.ts'

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
  const seen = seenIn(outcome)
  if (outcome.kind === 'returned')
    return seen === undefined ? outcome.value : valueFact(seen.tree, nowhere, find)
  if (outcome.kind !== 'threw') return said(outcome.kind, null)
  const { sqlstate, name, message } = outcome
  // The words of the server name keys and values that others have drawn.
  if (sqlstate !== undefined) return said('threw', sqlstate)
  return said(`threw ${name}`, seen === undefined ? message : valueFact(seen.tree, nowhere, find))
}

/** What is in answers that nobody can look into. */
export function unseenNotes(outcomes: readonly FlowOutcome[]): Note[] {
  const unseen = new Set(outcomes.flatMap((outcome) => seenIn(outcome)?.unseen ?? []))
  return [...unseen].map((what) => ({
    kind: 'unseen',
    message: `An answer has ${what} in it, which nobody can look into. It was not compared, so nothing is said about every order. Return plain values instead.`,
  }))
}

/** Tables that the flows had to do with, and that cannot be read. */
export function unreadNotes(
  unread: ReadonlyMap<string, string>,
  steps: readonly Pick<Step, 'footprint' | 'statements'>[],
): Note[] {
  const isTouched = (name: string): boolean =>
    steps.some(({ footprint: { opaque, touches }, statements }) => {
      const bare = name.slice(name.indexOf('.') + 1)
      return opaque
        ? statements.some((text) => text.includes(bare))
        : touches.some(({ object }) => object.split('#')[0] === name)
    })
  return [...unread]
    .filter(([name]) => isTouched(name))
    .map(([name, why]) => ({
      kind: 'unseen',
      message: `${name} was not compared: ${why}. Nothing is said about every order. Let it be readable, or leave it out by oracle.ignore.`,
    }))
}

/** What no flow returns. */
function said(what: string, more: Fact): Facts['ends'][number] {
  return { kind: 'object', entries: [[`‹${what}›`, more]] }
}

/** What an answer calls a value, what stands beside it, and what the object is called that it is in. */
interface Place {
  readonly name: string
  readonly beside: readonly string[]
  readonly within: string
}

export const nowhere: Place = { name: '', beside: [], within: '' }

/** `cart_id`, `cartId`, `ids` */
const namesKeys = /ids?$/i

/** Names of an id that is one of what it is in: `{ cart: { id } }`. */
function namesFor({ name, within }: Place): readonly string[] {
  return /^ids?$/i.test(name) && within !== '' ? [`${within}_id`, name] : [name]
}

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
        ([name, item]) =>
          [
            name,
            valueFact(item, isTag(name) ? place : { name, beside, within: place.name }, find),
          ] as const,
      ),
    }
  }
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string' && typeof value !== 'number') return null
  const { name, beside } = place
  if (name === '' || namesKeys.test(name)) {
    const found = namesFor(place).map((one) => find(String(value), one, beside))
    const key = keyFact(value, found.find(({ certain }) => certain) ?? found.at(-1))
    if (key) return key
  }
  if (typeof value === 'number') return value
  // The body of an answer that was read as a text.
  const inside = /^\s*[[{]/.test(value) ? readJson(value) : undefined
  return inside === undefined ? withPaths(value, find) : valueFact(inside, place, find)
}

function keyFact(
  literal: string | number,
  { keys, certain }: KeysFound = { keys: [], certain: false },
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
