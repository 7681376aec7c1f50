import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  Inject,
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { type Refusal, type Refused, isHoldfastError } from 'holdfast'
import {
  type HttpAnswer,
  type HttpErrorOptions,
  httpAnswerOf,
  refusalAnswerOf,
} from 'holdfast/http'
import { throwError } from 'rxjs'
import { ANSWERS } from './tokens.ts'

/** Nest asks by `instanceof`, which does not know errors of another installed copy of Holdfast. */
class AnyHoldfastError {
  static [Symbol.hasInstance](error: unknown): boolean {
    return isHoldfastError(error)
  }
}

/**
 * A verdict of a quota, credits or stock that refused, to be thrown: 429 with `Retry-After`, 409, 422 or 404.
 *
 * @example if (!verdict.ok) throw new VerdictRefused(verdict)
 */
export class VerdictRefused extends HttpException {
  readonly answer: HttpAnswer

  constructor(
    verdict: Pick<Refused<unknown>, 'ok' | 'reason' | 'retryAt'>,
    options?: { readonly statuses?: Readonly<Partial<Record<Refusal, number>>> },
  ) {
    const answer = refusalAnswerOf(verdict, options)
    super(answer.body as Record<string, unknown>, answer.status)
    this.answer = answer
  }
}

/** Answers errors of Holdfast over HTTP, on Express and Fastify; `HoldfastModule` registers it. */
export class HoldfastExceptionFilter implements ExceptionFilter {
  readonly #host: HttpAdapterHost
  readonly #options: HttpErrorOptions

  constructor(host: HttpAdapterHost, options: HttpErrorOptions) {
    this.#host = host
    this.#options = options
  }

  /** Called by Nest. */
  catch(error: unknown, host: ArgumentsHost): unknown {
    const kind: string = host.getType()
    if (kind === 'rpc') return throwError(() => error)
    // What GraphQL and others get back is what they throw.
    if (kind !== 'http') return error
    const response: unknown = host.switchToHttp().getResponse()
    const { httpAdapter } = this.#host
    const answer =
      error instanceof VerdictRefused ? error.answer : httpAnswerOf(error, this.#options)
    if (httpAdapter.isHeadersSent(response) || answer === undefined) {
      // It has begun to answer: with its connection cut, nobody takes half of it for the whole.
      socketOf(response).destroy?.()
      return undefined
    }
    for (const [name, value] of Object.entries(answer.headers ?? {}))
      httpAdapter.setHeader(response, name, value)
    // As text: of an object, adapters up to Nest 11 say that it is application/json, and warn of it.
    httpAdapter.reply(response, JSON.stringify(answer.body), answer.status)
    return undefined
  }
}

/** Of Fastify's reply Node's own response. */
function socketOf(response: unknown): { destroy?: () => void } {
  return ((response as { raw?: object }).raw ?? response) as { destroy?: () => void }
}

Catch(AnyHoldfastError, VerdictRefused)(HoldfastExceptionFilter)
Inject(HttpAdapterHost)(HoldfastExceptionFilter, undefined, 0)
Inject(ANSWERS)(HoldfastExceptionFilter, undefined, 1)
