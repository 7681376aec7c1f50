/** The single values of which an input is made, and the same input with another value in one place. */
import { readJson } from '../../core/read-json.ts'
import { secret } from '../record/http-input.ts'
import type { HttpInput, Input } from '../model.ts'

/** One text or number of an input. */
export interface Field {
  /** `body.show`, `path.1`, `0.amount`. */
  readonly path: string
  readonly value: string | number
  with(value: string | number): Input
}

/** All of them but secrets, which stand for a person. */
export function fieldsOf(input: Input): readonly Field[] {
  if (input.kind === 'arguments') {
    return leaves(input.values, []).map(({ at, value }) => ({
      path: at.join('.'),
      value,
      with: (next) => ({ ...input, values: replaced(input.values, at, next) as unknown[] }),
    }))
  }
  return [...ofBody(input), ...ofQuery(input), ...ofPath(input), ...ofHeaders(input)]
}

/** The input with every place in which the one value stands given the other. */
export function withEvery(input: Input, one: string | number, other: string | number): Input {
  const same = (value: string | number): boolean => String(value) === String(one)
  let changed = input
  for (const { path, value } of fieldsOf(input)) {
    if (!same(value)) continue
    const field = fieldsOf(changed).find((candidate) => candidate.path === path)
    if (field) changed = field.with(likeKind(field.value, other))
  }
  return changed
}

/** A text that came from a row, as a number where a number was. */
export function likeKind(model: string | number, value: string | number): string | number {
  return typeof model === 'number' && /^-?\d{1,15}$/.test(String(value)) ? Number(value) : value
}

interface Leaf {
  readonly at: readonly (string | number)[]
  readonly value: string | number
}

function leaves(value: unknown, at: readonly (string | number)[]): Leaf[] {
  if (typeof value === 'string' || typeof value === 'number') return [{ at, value }]
  if (Array.isArray(value)) return value.flatMap((one, index) => leaves(one, [...at, index]))
  if (!isPlain(value)) return []
  return Object.entries(value).flatMap(([name, one]) =>
    secret.test(name) ? [] : leaves(one, [...at, name]),
  )
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function replaced(value: unknown, at: readonly (string | number)[], next: unknown): unknown {
  const [first, ...rest] = at
  if (first === undefined) return next
  if (Array.isArray(value)) {
    return value.map((one: unknown, index) => (index === first ? replaced(one, rest, next) : one))
  }
  if (!isPlain(value)) return value
  return { ...value, [first]: replaced(value[first], rest, next) }
}

function ofBody(input: HttpInput): Field[] {
  const { body } = input
  if (body === undefined) return []
  const json = readJson(body)
  if (typeof json === 'object' && json !== null) {
    return leaves(json, []).map(({ at, value }) => ({
      path: ['body', ...at].join('.'),
      value,
      with: (next) => ({ ...input, body: JSON.stringify(replaced(json, at, next)) }),
    }))
  }
  if (!/^[\w.%+-]+=[^&]*(?:&[\w.%+-]+=[^&]*)*$/.test(body)) return []
  return ofPairs(body, 'body').map(({ path, value, text }) => ({
    path,
    value,
    with: (next) => ({ ...input, body: text(next) }),
  }))
}

function ofQuery(input: HttpInput): Field[] {
  const [bare = '', query] = input.path.split('?')
  if (query === undefined) return []
  return ofPairs(query, 'query').map(({ path, value, text }) => ({
    path,
    value,
    with: (next) => ({ ...input, path: `${bare}?${text(next)}` }),
  }))
}

interface PairField {
  readonly path: string
  readonly value: string
  text(next: string | number): string
}

function ofPairs(query: string, name: string): PairField[] {
  return [...new URLSearchParams(query)]
    .filter(([key]) => !secret.test(key))
    .map(([key, value]) => ({
      path: `${name}.${key}`,
      value,
      text(next) {
        const pairs = new URLSearchParams(query)
        pairs.set(key, String(next))
        return pairs.toString()
      },
    }))
}

function ofPath(input: HttpInput): Field[] {
  const [bare = '', query] = input.path.split('?')
  const parts = bare.split('/')
  return parts.flatMap((part, index): Field[] => {
    if (part === '') return []
    return [
      {
        path: `path.${index}`,
        value: decodeURIComponent(part),
        with(next) {
          const changed = parts.with(index, encodeURIComponent(String(next))).join('/')
          return { ...input, path: query === undefined ? changed : `${changed}?${query}` }
        },
      },
    ]
  })
}

/** Those in which applications take keys of their own, as `Idempotency-Key`. */
function ofHeaders(input: HttpInput): Field[] {
  return input.headers.flatMap(([name, value], index): Field[] => {
    if (!/^(?:idempotency-key|x-)/.test(name) || secret.test(name)) return []
    return [
      {
        path: `header.${name}`,
        value,
        with: (next) => ({
          ...input,
          headers: input.headers.with(index, [name, String(next)]),
        }),
      },
    ]
  })
}
