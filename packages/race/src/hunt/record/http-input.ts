/** A request as plain data: what it is called, what is sent again, what came back. */
import { types } from 'node:util'
import { readJson } from '../../core/read-json.ts'
import type { Heard } from './heard.ts'
import type { HttpInput, Input } from '../model.ts'

/** They belong to the connection, or are made anew by whoever sends. */
const ofConnection =
  /^(?:host|connection|keep-alive|content-length|transfer-encoding|upgrade|expect|te|trailer|accept-encoding|traceparent|x-holdfast-race-flow)$/

/** Headers and fields whose values nobody may read in a report. */
export const secret: RegExp =
  /^(?:proxy-)?authorization$|cookie|api-?key|token|secret|passw|session|csrf|signature|credential/i

/** What stands where a value was that is not written down. */
export const hidden = '(not written down)'

export function keptHeaders(
  headers: Iterable<readonly [string, string]>,
): readonly (readonly [string, string])[] {
  return [...headers].filter(([name]) => !ofConnection.test(name))
}

const drawn = /^(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27}|(?=\w*\d)[\w-]{16,})$/i

/** `POST /shows/7/book?x=1` → `POST /shows/:n/book`: what is in it of a key, or is long and drawn, is left out. */
export function endpointOf({ method, path }: Pick<HttpInput, 'method' | 'path'>): string {
  const [bare = ''] = path.split('?')
  const parts = bare.split('/').map((part) => (drawn.test(part) ? ':n' : part))
  return `${method} ${parts.join('/')}`
}

/** What a client was answered, for comparisons: the status, and the body read as JSON if it is some. */
export interface HttpAnswer {
  readonly status: number
  readonly body: unknown
}

export function answerOf(status: number, text: string): HttpAnswer {
  return { status, body: bodyOf(text) }
}

function bodyOf(text: string): unknown {
  return readJson(text) ?? text
}

/** The same request as fetch takes it. */
export function requestInit({ method, headers, body }: HttpInput): RequestInit {
  return {
    method,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
    redirect: 'manual',
    ...(body === undefined || method === 'GET' || method === 'HEAD' ? {} : { body }),
  }
}

/** The input as it may be written down: secrets in headers, in the query and in fields of the body are not. */
export function shownInput(input: Input): Input {
  if (input.kind === 'arguments') {
    return { ...input, values: input.values.map((value) => withoutSecrets(value)) }
  }
  const { body, headers, path } = input
  return {
    ...input,
    path: pathWithoutSecrets(path),
    headers: headers.map(([name, value]) => [name, secret.test(name) ? hidden : value]),
    body: body === undefined ? undefined : bodyWithoutSecrets(body),
  }
}

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (value instanceof Map) return new Map(entriesWithoutSecrets(value))
  if (!isPlain(value)) return value
  return Object.fromEntries(entriesWithoutSecrets(Object.entries(value)))
}

function entriesWithoutSecrets<N>(entries: Iterable<[N, unknown]>): [N, unknown][] {
  return [...entries].map(([name, one]) => [
    name,
    secret.test(String(name)) ? hidden : withoutSecrets(one),
  ])
}

/** An object with fields: neither a date nor a buffer, nor anything else of a kind of its own. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false
  return ![
    types.isDate,
    types.isRegExp,
    types.isSet,
    types.isAnyArrayBuffer,
    types.isNativeError,
  ].some((is) => is(value))
}

/** What another machine has answered, as it may be written down. */
export function shownHeard({ method, url, body, status, headers, text }: Heard): Heard {
  return {
    method,
    url: pathWithoutSecrets(url),
    body: bodyWithoutSecrets(body),
    status,
    headers: headers.filter(([name]) => name === 'content-type'),
    text: bodyWithoutSecrets(text),
  }
}

function pathWithoutSecrets(path: string): string {
  const at = path.indexOf('?')
  return at === -1 ? path : path.slice(0, at + 1) + pairsWithoutSecrets(path.slice(at + 1))
}

function bodyWithoutSecrets(body: string): string {
  const json = readJson(body)
  if (typeof json === 'object' && json !== null) return JSON.stringify(withoutSecrets(json))
  return body.includes('=') ? pairsWithoutSecrets(body) : body
}

/** `a=1&token=…`: only what is secret is changed. */
function pairsWithoutSecrets(pairs: string): string {
  return pairs
    .split('&')
    .map((pair) => {
      const [name = ''] = pair.split('=')
      return secret.test(name) ? `${name}=${hidden}` : pair
    })
    .join('&')
}
