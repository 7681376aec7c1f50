/** What is told of a race has no value in it that was sent as a secret, wherever it has got to: statements, rows, answers. */
import { readJson } from '../../core/read-json.ts'
import { hidden, isPlain, secret } from '../record/http-input.ts'
import type { Input } from '../model.ts'

/** Shorter ones stand everywhere: to mask them would hide what they are not. */
const leastLength = 4

/** The same with `hidden` in the place of each secret of these inputs. What has none in it stays the object that it is. */
export function maskSecrets<T>(told: T, inputs: readonly Input[]): T {
  const values = new Set(inputs.flatMap((input) => [...secretValues(input)]))
  // A secret within another one is masked with it.
  const longestFirst = [...values].toSorted((one, other) => other.length - one.length)
  return longestFirst.length === 0 ? told : (masked(told, longestFirst, new Map()) as T)
}

/** What was sent as a secret, whole and in its parts. */
export function* secretValues(input: Input): Generator<string> {
  if (input.kind === 'arguments') {
    yield* within(input.values)
    return
  }
  const { body = '', headers, path } = input
  for (const [name, value] of headers) if (secret.test(name)) yield* ofHeader(value)
  const at = path.indexOf('?')
  if (at !== -1) yield* ofPairs(path.slice(at + 1))
  const json = readJson(body)
  if (typeof json === 'object' && json !== null) yield* within(json)
  else yield* ofPairs(body)
}

/** `Bearer abc`, `sid=abc; csrf=def`: as a whole, and what is behind the names. */
function* ofHeader(value: string): Generator<string> {
  yield* long(value)
  for (const part of value.split(/[\s;,]+/)) {
    const at = part.indexOf('=')
    yield* readable(at === -1 ? part : part.slice(at + 1))
  }
  const [, basic] = /^basic\s+(\S+)/i.exec(value) ?? []
  if (basic === undefined) return
  const login = Buffer.from(basic, 'base64').toString()
  yield* long(login)
  // The name is that of a person, and stands for others as well.
  yield* long(login.slice(login.indexOf(':') + 1))
}

/** As it was sent, and as the application reads it: `s%3Aabc.sig` is a cookie `abc` that was signed. */
function* readable(part: string): Generator<string> {
  yield* long(part)
  const plain = decoded(part)
  if (plain !== part) yield* long(plain)
  const [, signed] = /^s:(.*)\.[^.]*$/s.exec(plain) ?? []
  if (signed !== undefined) yield* long(signed)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function* ofPairs(pairs: string): Generator<string> {
  for (const [name, value] of new URLSearchParams(pairs)) if (secret.test(name)) yield* long(value)
}

function* within(value: unknown, isSecret = false): Generator<string> {
  if (typeof value === 'string' || typeof value === 'number') {
    if (isSecret) yield* long(String(value))
    return
  }
  if (Array.isArray(value)) {
    for (const one of value) yield* within(one, isSecret)
    return
  }
  const fields = value instanceof Map ? value : isPlain(value) ? Object.entries(value) : []
  for (const [name, one] of fields) yield* within(one, isSecret || secret.test(String(name)))
}

/** `Bearer` and `Basic` are none. */
function* long(value: string): Generator<string> {
  if (value.length >= leastLength && !/^(?:bearer|basic|token)$/i.test(value)) yield value
}

type Seen = Map<object, unknown>

function masked(value: unknown, values: readonly string[], seen: Seen): unknown {
  if (typeof value === 'string') {
    return values.reduce((text, one) => text.replaceAll(one, hidden), value)
  }
  if (!Array.isArray(value) && !(value instanceof Map) && !isPlain(value)) return value
  if (seen.has(value)) return seen.get(value)
  // Whoever refers to itself is left as it is there.
  seen.set(value, value)
  const result = maskedWithin(value, values, seen)
  seen.set(value, result)
  return result
}

function maskedWithin(value: object, values: readonly string[], seen: Seen): object {
  let isChanged = false
  const next = (one: unknown): unknown => {
    const now = masked(one, values, seen)
    isChanged ||= now !== one
    return now
  }
  if (Array.isArray(value)) {
    const all: unknown[] = value.map(next)
    return isChanged ? all : (value as unknown[])
  }
  if (value instanceof Map) {
    const all = new Map([...value].map(([name, one]) => [name, next(one)]))
    return isChanged ? all : value
  }
  const all = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, next(one)]))
  return isChanged ? all : value
}
