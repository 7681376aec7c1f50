/** Inputs without their secrets get them again, from whoever has them. */
import { readJson } from '../../core/read-json.ts'
import { hidden, isPlain } from '../record/http-input.ts'
import type { Input } from '../model.ts'

/** Names of the headers and fields whose values were not written down. */
export function secretsIn(input: Input): readonly string[] {
  const names = new Set<string>()
  filled(input, (name) => {
    names.add(name)
    return hidden
  })
  return [...names]
}

/** The input as it was sent. @throws Error if a value is missing */
export function fillSecrets(
  input: Input,
  secrets: Readonly<Record<string, string | undefined>>,
): Input {
  return filled(input, (name) => {
    const value = secrets[name]
    if (value !== undefined && value !== '') return value
    throw new Error(
      `the value of ${name} was not written down when the test was made. Pass it as secrets: { ${JSON.stringify(name)}: … }`,
    )
  })
}

type Fill = (name: string) => string

function filled(input: Input, fill: Fill): Input {
  if (input.kind === 'arguments') {
    return { ...input, values: input.values.map((value) => within(value, fill)) }
  }
  const { body, headers, path } = input
  const at = path.indexOf('?')
  return {
    ...input,
    path: at === -1 ? path : path.slice(0, at + 1) + pairsWith(path.slice(at + 1), fill),
    headers: headers.map(([name, value]) => [name, value === hidden ? fill(name) : value]),
    body: body?.includes(hidden) ? bodyWith(body, fill) : body,
  }
}

function bodyWith(body: string, fill: Fill): string {
  const json = readJson(body)
  if (typeof json === 'object' && json !== null) return JSON.stringify(within(json, fill))
  return pairsWith(body, fill)
}

function within(value: unknown, fill: Fill): unknown {
  if (Array.isArray(value)) return value.map((one) => within(one, fill))
  const entries = (all: Iterable<[unknown, unknown]>): [unknown, unknown][] =>
    [...all].map(([name, one]) => [name, one === hidden ? fill(String(name)) : within(one, fill)])
  if (value instanceof Map) return new Map(entries(value))
  return isPlain(value)
    ? Object.fromEntries(entries(Object.entries(value)) as [string, unknown][])
    : value
}

function pairsWith(pairs: string, fill: Fill): string {
  return pairs
    .split('&')
    .map((pair) => {
      const [name = '', value] = pair.split('=')
      if (value !== hidden) return pair
      const found = fill(name)
      return `${name}=${found === hidden ? hidden : encodeURIComponent(found)}`
    })
    .join('&')
}
