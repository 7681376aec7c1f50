import { isHoldfastError } from '../core/errors.ts'
import type { HttpAnswer } from '../core/errors/http-answer.ts'
import { answersTo, type HttpErrorOptions, httpAnswerOf } from './http-answer-of.ts'

/** The codes of tRPC that answers become. */
export type TrpcCode =
  | 'BAD_REQUEST'
  | 'CONFLICT'
  | 'INTERNAL_SERVER_ERROR'
  | 'NOT_FOUND'
  | 'PAYMENT_REQUIRED'
  | 'SERVICE_UNAVAILABLE'
  | 'TOO_MANY_REQUESTS'
  | 'UNPROCESSABLE_CONTENT'

/** tRPC's own class of errors, which is passed in: two installed copies of it would not know each other. */
export type TrpcErrorClass = new (given: {
  code: TrpcCode
  message?: string
  cause?: unknown
}) => Error

/** tRPC has no code for 423. */
const codes: Readonly<Record<number, TrpcCode>> = {
  402: 'PAYMENT_REQUIRED',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  422: 'UNPROCESSABLE_CONTENT',
  423: 'CONFLICT',
  429: 'TOO_MANY_REQUESTS',
  503: 'SERVICE_UNAVAILABLE',
}

/** What `next()` of a middleware of tRPC resolves with, as far as it is read. */
interface Outcome {
  readonly ok: boolean
  readonly error?: { readonly cause?: unknown }
}

/**
 * Middleware for tRPC: an error of Holdfast in a procedure becomes a `TRPCError` with the code that fits and a message
 * that tells nothing of the inside; the error itself is its `cause`, for `onError`. All others stay as they are.
 *
 * @example const procedure = t.procedure.use(trpcErrors(TRPCError))
 */
export function trpcErrors(
  TRPCError: TrpcErrorClass,
  options: HttpErrorOptions = {},
): <R>(given: { next: () => Promise<R> }) => Promise<R> {
  const answerTo = answersTo(options)
  return async ({ next }) => {
    const result = await next()
    const { ok, error } = result as Outcome
    const answer = ok ? undefined : answerTo(error?.cause)
    if (answer === undefined) return result
    const { title } = answer.body as { title: string }
    const code = codes[answer.status] ?? (answer.status < 500 ? 'BAD_REQUEST' : broken)
    throw new TRPCError({ code, message: title, cause: error?.cause })
  }
}

const broken: TrpcCode = 'INTERNAL_SERVER_ERROR'

/**
 * `Retry-After` for the answers of tRPC. Where a batch has several errors, the longest of them.
 *
 * @example createHTTPServer({ router, responseMeta: trpcRetryAfter })
 */
export function trpcRetryAfter({
  errors,
}: {
  readonly errors: readonly { readonly cause?: unknown }[]
}): { headers?: Record<string, string> } {
  const seconds = errors
    .filter(({ cause }) => isHoldfastError(cause))
    .map(({ cause }) => retryAfterOf(httpAnswerOf(cause)))
  const longest = Math.max(0, ...seconds)
  return longest === 0 ? {} : { headers: { 'retry-after': String(longest) } }
}

function retryAfterOf(answer: HttpAnswer | undefined): number {
  return Number(answer?.headers?.['retry-after'] ?? 0)
}
