/** What is answered to an HTTP request, whatever framework sends it. */
export interface HttpAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text as it is; anything else is sent as JSON; nothing is an empty body. */
  readonly body?: unknown
}

/** As RFC 9457 has it; `more` are members of ours. */
export function problem(
  status: number,
  title: string,
  more: Readonly<Record<string, unknown>> = {},
): HttpAnswer {
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    body: { title, status, ...more },
  }
}

/** The body as text, and the headers with the type it has. */
export function sent({ headers = {}, body }: HttpAnswer): {
  headers: Record<string, string>
  text?: string
} {
  if (body === undefined || body === null) return { headers: { ...headers } }
  const named = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  if (typeof body === 'string') return { headers: { ...headers }, text: body }
  const type = named ? {} : { 'content-type': 'application/json' }
  return { headers: { ...type, ...headers }, text: JSON.stringify(body) }
}

/** The same as a Response. @throws TypeError or RangeError if it cannot be sent */
export function asResponse(answer: HttpAnswer): Response {
  const { headers, text = '' } = sent(answer)
  return new Response(text === '' ? null : text, { status: answer.status, headers })
}
