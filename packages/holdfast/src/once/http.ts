import { isAnyArrayBuffer } from 'node:util/types'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { asResponse, type HttpAnswer, problem, sent } from '../core/errors/http-answer.ts'
import type { Once, OnceAnswer } from './once.ts'
import { assertKept } from './answer-body.ts'
import { bytesAsData, bytesOf, fingerprintOf, keyText } from './names.ts'
import { assertFunction, notGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

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
  /**
   * Whether an answer is final: kept, and sent to every duplicate. One that is not is sent once, what was
   * written before it is undone, and the next request with the key does the work again.
   * @defaultValue all but 408, 409, 423, 425, 429 and 500 or more, which may be another answer the next time
   *
   * @example keepIf: ({ status }) => status < 400
   */
  readonly keepIf?: (answer: HttpAnswer) => boolean
  /** @defaultValue 'Idempotency-Key' */
  readonly header?: string
}

const idempotencyOptions: KnownOptions<IdempotencyOptions<never>> = {
  scope: 'function',
  required: 'boolean',
  keep: 'checked',
  keepIf: 'function',
  header: 'checked',
}

/** A request, whatever framework it came through. */
interface Asked {
  readonly key: string | undefined
  /** Asked for only where there is a key: nothing is compared without one. */
  readonly payload: () => string
}

/** Timeout, conflict, locked, too early, too many: refusals that pass. */
const passing: ReadonlySet<number> = new Set([408, 409, 423, 425, 429])

const isFinal = ({ status }: HttpAnswer): boolean => status < 500 && !passing.has(status)

/** An answer that is not final is not kept, and what was written before it is undone. */
class NotKept extends Error {
  readonly answer: HttpAnswer
  constructor(answer: HttpAnswer) {
    super('not kept')
    this.answer = answer
  }
}

/** What HTTP calls a token. Under no name nothing would be found, and every request would be a new one. */
const headerName = /^[\w!#$%&'*+.^`|~-]+$/
const replayedHeader = 'idempotency-replayed'
const longestKey = 255

/** When the handler is made, and not when the first request comes. @throws OPTION_INVALID */
function checked<R>(handler: unknown, given: IdempotencyOptions<R>): IdempotencyOptions<R> {
  const options = optionsGiven(given, idempotencyOptions as KnownOptions<typeof given>)
  assertFunction(handler, 'handler')
  assertFunction(options.scope, 'scope')
  const { header = defaultHeader } = options
  if (typeof header !== 'string' || !headerName.test(header))
    throw notGiven('header', 'the name of a header')
  if (options.keep !== undefined) durationMs(options.keep, 'keep')
  return options
}

async function answerTo<Tx, R>(
  once: Once<Tx>,
  request: R,
  { key, payload }: Asked,
  work: (tx: Tx) => Promise<HttpAnswer>,
  options: IdempotencyOptions<R>,
): Promise<HttpAnswer> {
  const {
    required = true,
    keep = '24 h',
    keepIf = isFinal,
    scope,
    header = defaultHeader,
  } = options
  if (key === undefined || key === '') {
    if (required) return problem(400, `${header} header is missing`)
    // Nobody can ask for this one again, so it need not be remembered for long.
    return await kept(once, crypto.randomUUID(), work, keepIf, { keep: '1 s' })
  }
  if (key.length > longestKey) return problem(400, `${header} header is too long`)
  return await kept(once, key, work, keepIf, {
    keep,
    payload: payload(),
    // An empty one would show everybody's answers to everybody.
    scope: `http:${keyText(await scope(request), 'scope')}`,
    wait: 'nowait',
  })
}

async function kept<Tx>(
  once: Once<Tx>,
  key: string,
  work: (tx: Tx) => Promise<HttpAnswer>,
  keepIf: (answer: HttpAnswer) => boolean,
  options: { keep: Duration; payload?: string; scope?: string; wait?: 'nowait' },
): Promise<HttpAnswer> {
  let done: OnceAnswer<HttpAnswer, { payload: string; wait: 'nowait' }>
  try {
    done = await once(
      key,
      async (tx) => {
        const answer = await work(tx)
        // One that cannot be sent must not be kept: nobody would ever get it, and the work would be done.
        responseOf(answer)
        if (!keepIf(answer)) throw new NotKept(answer)
        return answer
      },
      options,
    )
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

/**
 * `Idempotency-Key` for a Fetch API handler (Hono, Next.js, Bun, Deno, workers). The handler works in the
 * transaction it is given; its answer is stored in the same. A duplicate gets that answer (with the header
 * `idempotency-replayed`), 409 while the first is at work, and 422 if it asks for something else.
 *
 * @example
 * app.post('/payments', (c) => pay(c.req.raw))
 * const pay = idempotentFetch(hf.once, async (tx, request) => {
 *   const { amount } = (await request.json()) as { amount: number }
 *   return { status: 201, body: await createPayment(tx, amount) }
 * }, { scope: (request) => userOf(request) })
 */
export function idempotentFetch<Tx, R extends Request = Request>(
  once: Once<Tx>,
  handler: (tx: Tx, request: R) => Promise<HttpAnswer>,
  given: IdempotencyOptions<R>,
): (request: R) => Promise<Response> {
  const options = checked(handler, given)
  return async (request) => {
    if (request.bodyUsed) throw bodyUnknown('was read before: give this handler the request unread')
    const body = await request.clone().arrayBuffer()
    const { pathname, search } = new URL(request.url)
    const asked = {
      key: request.headers.get(options.header ?? defaultHeader) ?? undefined,
      payload: () => `${request.method} ${pathname}${search}${bodyText(body)}`,
    }
    // A body can be read once, and a transaction may be tried again.
    const work = (tx: Tx): Promise<HttpAnswer> => handler(tx, request.clone() as R)
    return responseOf(await answerTo(once, request, asked, work, options))
  }
}

/** @throws OPTION_INVALID if it cannot be sent or kept: no status, a body with 204, a header that is none, a Response of one's own, a stream */
function responseOf(answer: HttpAnswer): Response {
  try {
    const { status } = answer
    if (answer instanceof Response || typeof status !== 'number')
      throw new TypeError('it is not { status, headers, body }')
    assertKept(answer.body)
    return asResponse(answer)
  } catch (cause) {
    const subject = `what the handler answered cannot be sent, and nothing was done: ${(cause as Error).message}`
    throw holdfastError('OPTION_INVALID', { details: { option: 'handler', subject }, cause })
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Two bodies have the same text only if they are the same: what is no UTF-8 would all be read alike. */
function bodyText(body: ArrayBuffer): string {
  try {
    return `\n${utf8.decode(body)}`
  } catch {
    // No address has a space in it.
    return ` base64\n${Buffer.from(body).toString('base64')}`
  }
}

/** The part of an Express request that is read. */
export interface ExpressRequest {
  readonly method: string
  readonly originalUrl: string
  readonly body?: unknown
  /** As Node's own requests have it. */
  readonly readableDidRead?: boolean
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
 * @example
 * // `handler` is typed with the request of your application: (tx, req: Request & { user: User }) => …
 * app.post('/payments', express.json(), idempotentExpress(hf.once, handler, { scope: (req) => req.user.id }))
 */
export function idempotentExpress<Tx, R extends ExpressRequest, S extends ExpressResponse>(
  once: Once<Tx>,
  handler: (tx: Tx, request: R) => Promise<HttpAnswer>,
  given: IdempotencyOptions<R>,
): (request: R, response: S, next: (error: unknown) => void) => Promise<void> {
  const options = checked(handler, given)
  return async (request, response, next) => {
    try {
      const asked = {
        key: request.get(options.header ?? defaultHeader),
        payload: () => {
          if (isUnparsed(request, (name) => request.get(name)))
            throw bodyUnknown('was not parsed: put the body parser before this handler')
          return payloadOf(request.method, request.originalUrl, request.body)
        },
      }
      const answer = await answerTo(once, request, asked, (tx) => handler(tx, request), options)
      const { headers, text } = sent(answer)
      response.status(answer.status).set(headers).end(text)
    } catch (error) {
      next(error)
    }
  }
}

/** A request as Node's frameworks have it, after its body was parsed. */
export interface ParsedRequest {
  readonly method: string
  readonly url: string
  readonly body?: unknown
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** As Node's own requests have it. */
  readonly readableDidRead?: boolean
}

/**
 * The same for any other framework: answers what is to be sent, and sends nothing.
 *
 * @example
 * const answer = await idempotentAnswer(hf.once, request, (tx) => work(tx, request), { scope: () => user.id })
 * @throws OPTION_INVALID if nobody has read the body, and those of `once`
 */
export async function idempotentAnswer<Tx, R extends ParsedRequest>(
  once: Once<Tx>,
  request: R,
  work: (tx: Tx) => Promise<HttpAnswer>,
  given: IdempotencyOptions<R>,
): Promise<HttpAnswer> {
  const options = checked(work, given)
  const header = (name: string): string | undefined => {
    const value = request.headers[name.toLowerCase()]
    return typeof value === 'string' ? value : value?.[0]
  }
  const asked = {
    key: header(options.header ?? defaultHeader),
    payload: () => {
      if (isUnparsed(request, header))
        throw bodyUnknown('was not parsed: let a parser for its content type read it first')
      return payloadOf(request.method, request.url, request.body)
    },
  }
  return await answerTo(once, request, asked, work, options)
}

/** The part of a Fastify request that is read. */
export type FastifyRequest = Omit<ParsedRequest, 'readableDidRead'>

/** The part of a Fastify reply that is used. */
export interface FastifyReply {
  code(status: number): this
  headers(headers: Record<string, string>): this
  send(text?: string): unknown
}

/**
 * The same for Fastify.
 *
 * @example
 * // `handler` is typed with the request of your application.
 * app.post('/payments', idempotentFastify(hf.once, handler, { scope: (request) => request.user.id }))
 */
export function idempotentFastify<Tx, R extends FastifyRequest, S extends FastifyReply>(
  once: Once<Tx>,
  handler: (tx: Tx, request: R) => Promise<HttpAnswer>,
  given: IdempotencyOptions<R>,
): (request: R, reply: S) => Promise<S> {
  const options = checked(handler, given)
  return async (request, reply) => {
    const answer = await idempotentAnswer(once, request, (tx) => handler(tx, request), options)
    const { headers, text } = sent(answer)
    reply.code(answer.status).headers(headers).send(text)
    return reply
  }
}

/**
 * There is a body, and nobody has read it: another one under the same key would look the same. Some parsers
 * leave `{}` for a content type that is not theirs.
 */
function isUnparsed(
  { body, readableDidRead }: { readonly body?: unknown; readonly readableDidRead?: boolean },
  header: (name: string) => string | undefined,
): boolean {
  const isSent =
    Number(header('content-length') ?? 0) > 0 || header('transfer-encoding') !== undefined
  return isSent && (body === undefined || (readableDidRead === false && isEmpty(body)))
}

function isEmpty(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Object.keys(body).length === 0
}

function bodyUnknown(why: string): Error {
  const details = { option: 'body', subject: `the body of the request ${why}` }
  return holdfastError('OPTION_INVALID', { details })
}

function payloadOf(method: string, url: string, body: unknown): string {
  return `${method} ${url}\n${parsedText(body)}`
}

/**
 * Bodies of two kinds never have the same text, be they written alike: JSON does not begin with a space. What older
 * versions have stored of objects, lists and bytes is the same.
 */
function parsedText(body: unknown): string {
  if (typeof body === 'string') return ` text\n${body}`
  if (ArrayBuffer.isView(body) || isAnyArrayBuffer(body))
    return ` base64\n${bytesOf(body).toString('base64')}`
  // As JSON, of which two that differ have two: what is no plain data, such as a Map or a stream, is refused.
  fingerprintOf(body, 'body')
  return JSON.stringify(body, bytesAsData) ?? ''
}
