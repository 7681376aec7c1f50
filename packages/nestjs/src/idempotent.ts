import 'reflect-metadata'
import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Inject,
  type NestInterceptor,
  SetMetadata,
  UseInterceptors,
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import {
  type HttpAnswer,
  type IdempotencyOptions,
  idempotentAnswer,
  idempotentFetch,
  type ParsedRequest,
} from 'holdfast/once'
import { lastValueFrom, type Observable, of } from 'rxjs'
import { holdBack } from './hold-back.ts'
import { assertDone, assertPlain } from './outcome.ts'
import type { Runtime } from './runtime.ts'
import { RUNTIME } from './tokens.ts'
import { misused, sendsItself, sentItself } from './wrap-method.ts'

const noted = Symbol.for('holdfast.nestjs.idempotent')

/** A request of Express or Fastify. */
export interface NestRequest extends ParsedRequest {
  readonly originalUrl?: string
}

/** A response of Express, or a reply of Fastify. */
interface NestResponse {
  readonly statusCode: number
  getHeaders(): Readonly<Record<string, unknown>>
}

/**
 * `Idempotency-Key` for a route: its handler runs in a transaction (`CurrentTransaction`), its answer is stored in the
 * same, and a duplicate gets that answer. The body has to be plain data. An exception is not stored: the work is undone,
 * and the next request with the key does it again.
 *
 * @example class Payments { @Post() @Idempotent({ scope: (request: MyRequest) => request.user.id }) async pay() { … } }
 * @throws those of `once`, OPTION_INVALID
 */
export function Idempotent<R extends NestRequest = NestRequest>(
  options: IdempotencyOptions<R>,
): MethodDecorator & ClassDecorator {
  if (typeof options?.scope !== 'function')
    throw misused('Idempotent', 'scope has to say who asks: a function of the request')
  // Looks at the rest of its settings, as it would in any other framework.
  idempotentFetch(undefined as never, () => Promise.resolve({ status: 200 }), options as never)
  return applyDecorators(SetMetadata(noted, options), UseInterceptors(IdempotencyInterceptor))
}

/** What `@Idempotent` puts around a route. */
class IdempotencyInterceptor implements NestInterceptor {
  readonly #runtime: Runtime<unknown>
  readonly #host: HttpAdapterHost

  constructor(runtime: Runtime<unknown>, host: HttpAdapterHost) {
    this.#runtime = runtime
    this.#host = host
  }

  /** Called by Nest. */
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const options = optionsOf(context)
    if (context.getType<string>() !== 'http') throw misused('Idempotent', 'it is for HTTP')
    if (sendsItself(context.getClass(), context.getHandler().name))
      throw misused('Idempotent', 'an answer sent through @Res() is not seen: use passthrough')
    const http = context.switchToHttp()
    const request = http.getRequest<NestRequest>()
    const response = http.getResponse<NestResponse>()
    const { hf, ambient } = this.#runtime
    // The key would be remembered in another transaction than the one around it, which may still be undone.
    if (ambient.find() !== undefined)
      throw misused('Idempotent', 'a transaction is open around the route already')
    const before = headersOf(response)
    const held = holdBack(response, () => sentItself('Idempotent'))
    let isReplayed = false
    const once = async (...args: Parameters<typeof hf.once>): Promise<unknown> => {
      const done = await hf.once(...args)
      isReplayed = !done.ok || done.replayed
      return done
    }
    const work = async (tx: unknown): Promise<HttpAnswer> =>
      await ambient.run(tx, async () => {
        // Called anew for each attempt, inside: Nest runs the handler in the context of this call.
        const body = assertPlain(
          assertDone(
            await held.run(() => lastValueFrom(next.handle(), { defaultValue: undefined })),
          ),
        )
        const headers = newIn(headersOf(response), before)
        return { status: response.statusCode, headers, body }
      })
    const answer = await idempotentAnswer(once as typeof hf.once, parsed(request), work, {
      ...options,
      scope: () => options.scope(request),
    }).finally(() => held.release())
    // A run of the handler that was undone, before somebody else's answer was found.
    if (isReplayed) held.putBack()
    const { httpAdapter } = this.#host
    for (const [name, value] of Object.entries(answer.headers ?? {}))
      httpAdapter.setHeader(response, name, value)
    httpAdapter.status(response, answer.status)
    return of(answer.body)
  }
}

Inject(RUNTIME)(IdempotencyInterceptor, undefined, 0)
Inject(HttpAdapterHost)(IdempotencyInterceptor, undefined, 1)

function optionsOf(context: ExecutionContext): IdempotencyOptions<NestRequest> {
  const options: unknown =
    Reflect.getMetadata(noted, context.getHandler()) ??
    Reflect.getMetadata(noted, context.getClass())
  if (options === undefined) throw misused('Idempotent', 'use the decorator, not its interceptor')
  return options as IdempotencyOptions<NestRequest>
}

/** What is compared is what was asked for, before a router took parts of the address away. */
function parsed(request: NestRequest): ParsedRequest {
  const { method, originalUrl, url, headers, body, readableDidRead } = request
  return {
    method,
    url: originalUrl ?? url,
    headers,
    body,
    ...(readableDidRead === undefined ? {} : { readableDidRead }),
  }
}

function headersOf(response: NestResponse): Record<string, string> {
  return Object.fromEntries(
    Object.entries(response.getHeaders())
      // Whoever repeats a request with somebody's key must not get a session with it.
      .filter(([name, value]) => name !== 'set-cookie' && value !== undefined)
      // Several values mean the same in one line; cookies are the only exception.
      .map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : String(value)]),
  )
}

function newIn(
  now: Record<string, string>,
  before: Record<string, string>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(now).filter(([name, value]) => before[name] !== value))
}
