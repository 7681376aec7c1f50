import type { Refusal } from '../core/refusals.ts'
import { fixedText, type ShownText } from '../core/shown-text.ts'
import { safeHeaders } from './headers.ts'

type Headers = Readonly<Record<string, string>>

/** Any answer of the console. */
export function answer(
  body: ShownText | ReadableStream<Uint8Array> | null,
  { status = 200, headers = {} }: { status?: number; headers?: Headers } = {},
): Response {
  return new Response(body, { status, headers: { ...safeHeaders, ...headers } })
}

/** Data that is JSON already. */
export function jsonAnswer(
  json: ShownText,
  { status = 200, headers = {} }: { status?: number; headers?: Headers } = {},
): Response {
  const type = { 'content-type': 'application/json; charset=utf-8' }
  return answer(json, { status, headers: { ...type, ...headers } })
}

export function refusalAnswer({ status, body, headers }: Refusal): Response {
  return jsonAnswer(fixedText(JSON.stringify({ error: body })), { status, headers })
}
