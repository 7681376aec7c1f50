import { asResponse, sent } from '../core/errors/http-answer.ts'
import { answersTo, type HttpErrorOptions } from './http-answer-of.ts'

/** What a handler may have said of the answer that it did not get to send. */
const ofAnother = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-length',
  'etag',
  'expires',
  'last-modified',
] as const

/** The part of an Express response that is used. */
export interface ExpressErrorResponse {
  readonly headersSent: boolean
  status(code: number): this
  removeHeader?(name: string): unknown
  set(headers: Record<string, string>): this
  end(text?: string): unknown
}

/**
 * Error middleware for Express: answers errors of Holdfast, and passes all others on. Put it after the routes, before
 * your own error middleware.
 *
 * @example app.use(expressErrors())
 */
export function expressErrors(
  options: HttpErrorOptions = {},
): (
  error: unknown,
  request: unknown,
  response: ExpressErrorResponse,
  next: (error: unknown) => void,
) => void {
  const answerTo = answersTo(options)
  // Express knows error middleware by its four parameters.
  return (error, _request, response, next) => {
    // Whoever has begun to answer cannot be answered again: Express ends that connection.
    const answer = response.headersSent ? undefined : answerTo(error)
    if (answer === undefined) return next(error)
    const { headers, text } = sent(answer)
    for (const name of ofAnother) response.removeHeader?.(name)
    response.status(answer.status).set(headers).end(text)
  }
}

/** The part of a Fastify reply that is used. */
export interface FastifyErrorReply {
  code(status: number): this
  removeHeader?(name: string): unknown
  headers(headers: Record<string, string>): this
  send(text?: string): unknown
}

/**
 * Error handler for Fastify: answers errors of Holdfast, and throws all others, which Fastify gives to the handler of
 * the surrounding scope, in the end its own.
 *
 * @example app.setErrorHandler(fastifyErrors())
 */
export function fastifyErrors(
  options: HttpErrorOptions = {},
): (error: unknown, request: unknown, reply: FastifyErrorReply) => void {
  const answerTo = answersTo(options)
  return (error, _request, reply) => {
    const answer = answerTo(error)
    if (answer === undefined) throw error
    const { headers, text } = sent(answer)
    for (const name of ofAnother) reply.removeHeader?.(name)
    reply.code(answer.status).headers(headers).send(text)
  }
}

/** The part of a Hono context that is used. */
export interface HonoErrorContext {
  readonly error: Error | undefined
  get res(): Response
  set res(response: Response)
}

/**
 * Middleware for Hono: answers errors of Holdfast in the routes after it; all others are left to `app.onError`.
 *
 * @example app.use(honoErrors())
 */
export function honoErrors(
  options: HttpErrorOptions = {},
): (context: HonoErrorContext, next: () => Promise<void>) => Promise<void> {
  const answerTo = answersTo(options)
  return async (context, next) => {
    await next()
    const answer = answerTo(context.error)
    if (answer !== undefined) context.res = asResponse(answer)
  }
}

/**
 * A Fetch API handler (Next.js route handlers, Bun, Deno, workers) that answers errors of Holdfast; all others are
 * thrown as they are, so that `redirect()` and `notFound()` of Next.js work.
 *
 * @example export const POST = fetchErrors(async (request: Request) => { … })
 */
export function fetchErrors<A extends readonly unknown[]>(
  handler: (...args: A) => Response | Promise<Response>,
  options: HttpErrorOptions = {},
): (...args: A) => Promise<Response> {
  const answerTo = answersTo(options)
  return async (...args) => {
    try {
      return await handler(...args)
    } catch (error) {
      const answer = answerTo(error)
      if (answer === undefined) throw error
      return asResponse(answer)
    }
  }
}
