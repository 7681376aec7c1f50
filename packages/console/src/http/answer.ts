import type { Refusal } from '../core/refusals.ts'
import { safeHeaders } from './headers.ts'

type Headers = Readonly<Record<string, string>>

/** Any answer of the console. */
export function answer(
  body: string | ReadableStream<Uint8Array> | null,
  { status = 200, headers = {} }: { status?: number; headers?: Headers } = {},
): Response {
  return new Response(body, { status, headers: { ...safeHeaders, ...headers } })
}

/** Data that is JSON already. */
export function jsonAnswer(
  json: string,
  { status = 200, headers = {} }: { status?: number; headers?: Headers } = {},
): Response {
  const type = { 'content-type': 'application/json; charset=utf-8' }
  return answer(json, { status, headers: { ...type, ...headers } })
}

export function refusalAnswer({ status, body, headers }: Refusal): Response {
  return jsonAnswer(JSON.stringify({ error: body }), { status, headers })
}
