import type { Duration } from '../core/duration.ts'
import type { Once, OnceAnswer } from './index.ts'

/** What a handler answers: kept as it is, and sent to every duplicate. */
export interface HttpAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text as it is; anything else is sent as JSON; nothing is an empty body. */
  readonly body?: unknown
}

/** Settings of the middleware. `R` is the framework's own request. */
export interface IdempotencyOptions<R> {
  /**
   * Who asks: a user, a tenant, an API key. Required, because the answer to one caller's key must not
   * be shown to another who uses the same.
   */
  readonly scope: (request: R) => string | Promise<string>
  /** A request without the header is answered with 400. Otherwise its work is simply done. @defaultValue true */
  readonly required?: boolean
  /** How long answers are kept. @defaultValue '24 h' */
  readonly keep?: Duration
  /** @defaultValue 'Idempotency-Key' */
  readonly header?: string
}

/** A request, whatever framework it came through. */
interface Asked {
  readonly key: string | undefined
  readonly payload: string
}

/** An answer of 500 or more is not kept, and what was written before it is undone. */
class NotKept extends Error {
  readonly answer: HttpAnswer
  constructor(answer: HttpAnswer) {
    super('not kept')
    this.answer = answer
  }
}

const replayedHeader = 'idempotency-replayed'
const longestKey = 255

async function answerTo<Tx, R>(
  once: Once<Tx>,
  request: R,
  { key, payload }: Asked,
  work: (tx: Tx) => Promise<HttpAnswer>,
  options: IdempotencyOptions<R>,
): Promise<HttpAnswer> {
  const { required = true, keep = '24 h', scope, header = defaultHeader } = options
  if (key === undefined || key === '') {
    if (required) return problem(400, `${header} header is missing`)
    // Nobody can ask for this one again, so it need not be remembered for long.
    return await kept(once, crypto.randomUUID(), work, { keep: '1 s' })
  }
  if (key.length > longestKey) return problem(400, `${header} header is too long`)
  return await kept(once, key, work, {
    keep,
    payload,
    scope: `http:${await scope(request)}`,
    wait: false,
  })
}

async function kept<Tx>(
  once: Once<Tx>,
  key: string,
  work: (tx: Tx) => Promise<HttpAnswer>,
  options: { keep: Duration; payload?: string; scope?: string; wait?: false },
): Promise<HttpAnswer> {
  let done: OnceAnswer<HttpAnswer, { payload: string; wait: false }>
  try {
    done = (await once(
      key,
      async (tx) => {
        const answer = await work(tx)
        if (answer.status >= 500) throw new NotKept(answer)
        return answer
      },
      options,
    )) as typeof done
  } catch (error) {
    if (error instanceof NotKept) return error.answer
    throw error
  }
  if (done.ok) {
    const { result, replayed } = done
    return replayed
      ? { ...result, headers: { ...result.headers, [replayedHeader]: 'true' } }
      : result
  }
  if (done.reason === 'mismatch') return problem(422, 'the key was used for another request')
  const busy = problem(409, 'a request with this key is in progress')
  return { ...busy, headers: { ...busy.headers, 'retry-after': '1' } }
}

const defaultHeader = 'Idempotency-Key'

/** As RFC 9457 has it. */
function problem(status: number, title: string): HttpAnswer {
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    body: { title, status },
  }
}

/** The body as text, and the headers with the type it has. */
function sent({ headers = {}, body }: HttpAnswer): {
  headers: Record<string, string>
  text?: string
} {
  if (body === undefined || body === null) return { headers: { ...headers } }
  const named = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  if (typeof body === 'string') return { headers: { ...headers }, text: body }
  const type = named ? {} : { 'content-type': 'application/json' }
  return { headers: { ...type, ...headers }, text: JSON.stringify(body) }
}

/**
 * `Idempotency-Key` for a Fetch API handler (Hono, Next.js, Bun, Deno, workers). The handler works in the
 * transaction it is given; its answer is stored in the same. A duplicate gets that answer (with the header
 * `idempotency-replayed`), 409 while the first is at work, and 422 if it asks for something else.
 *
 * @example
 * app.post('/payments', (c) => pay(c.req.raw))
 * const pay = idempotentFetch(hf.once, async (tx, request) => {
 *   const { amount } = await request.json()
 *   return { status: 201, body: await createPayment(tx, amount) }
 * }, { scope: (request) => userOf(request) })
 */
export function idempotentFetch<Tx, R extends Request = Request>(
  once: Once<Tx>,
  handler: (tx: Tx, request: R) => Promise<HttpAnswer>,
  options: IdempotencyOptions<R>,
): (request: R) => Promise<Response> {
  return async (request) => {
    const text = await request.clone().text()
    const { pathname, search } = new URL(request.url)
    const asked = {
      key: request.headers.get(options.header ?? defaultHeader) ?? undefined,
      payload: `${request.method} ${pathname}${search}\n${text}`,
    }
    // A body can be read once, and a transaction may be tried again.
    const work = (tx: Tx): Promise<HttpAnswer> => handler(tx, request.clone() as R)
    const answer = await answerTo(once, request, asked, work, options)
    const { headers, text: body } = sent(answer)
    return new Response(body ?? null, { status: answer.status, headers })
  }
}

/** The part of an Express request that is read. */
export interface ExpressRequest {
  readonly method: string
  readonly originalUrl: string
  readonly body?: unknown
  get(name: string): string | undefined
}

/** The part of an Express response that is used. */
export interface ExpressResponse {
  status(code: number): this
  set(headers: Record<string, string>): this
  end(text?: string): unknown
}

/**
 * The same for Express, after its body parser.
 *
 * @example app.post('/payments', express.json(), idempotentExpress(hf.once, handler, { scope: (req) => req.user.id }))
 */
export function idempotentExpress<Tx, R extends ExpressRequest, S extends ExpressResponse>(
  once: Once<Tx>,
  handler: (tx: Tx, request: R) => Promise<HttpAnswer>,
  options: IdempotencyOptions<R>,
): (request: R, response: S, next: (error: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    try {
      const asked = {
        key: request.get(options.header ?? defaultHeader),
        payload: payloadOf(request.method, request.originalUrl, request.body),
      }
      const answer = await answerTo(once, request, asked, (tx) => handler(tx, request), options)
      const { headers, text } = sent(answer)
      response.status(answer.status).set(headers).end(text)
    } catch (error) {
      next(error)
    }
  }
}

/** The part of a Fastify request that is read. */
export interface FastifyRequest {
  readonly method: string
  readonly url: string
  readonly body?: unknown
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** The part of a Fastify reply that is used. */
export interface FastifyReply {
  code(status: number): this
  headers(headers: Record<string, string>): this
  send(text?: string): unknown
}

/**
 * The same for Fastify.
 *
 * @example app.post('/payments', idempotentFastify(hf.once, handler, { scope: (request) => request.user.id }))
 */
export function idempotentFastify<Tx, R extends FastifyRequest, S extends FastifyReply>(
  once: Once<Tx>,
  handler: (tx: Tx, request: R) => Promise<HttpAnswer>,
  options: IdempotencyOptions<R>,
): (request: R, reply: S) => Promise<S> {
  return async (request, reply) => {
    const value = request.headers[(options.header ?? defaultHeader).toLowerCase()]
    const asked = {
      key: typeof value === 'string' ? value : value?.[0],
      payload: payloadOf(request.method, request.url, request.body),
    }
    const answer = await answerTo(once, request, asked, (tx) => handler(tx, request), options)
    const { headers, text } = sent(answer)
    reply.code(answer.status).headers(headers).send(text)
    return reply
  }
}

function payloadOf(method: string, url: string, body: unknown): string {
  const text =
    typeof body === 'string'
      ? body
      : body instanceof Uint8Array
        ? Buffer.from(body).toString('base64')
        : (JSON.stringify(body) ?? '')
  return `${method} ${url}\n${text}`
}
