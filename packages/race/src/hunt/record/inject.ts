/** Requests that Fastify's own `inject()` makes: they reach no server of node:http, and are calls all the same. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Server } from 'node:http'
import { callbackify } from 'node:util'
import { answerOf, endpointOf, type HttpAnswer } from './http-input.ts'
import type { HttpInput, Send } from '../model.ts'
import type { Ended, Known, Recorder } from './record-calls.ts'

/** What `inject()` answers, with the request that it made of its options. */
interface Injected {
  readonly statusCode: number
  readonly payload: string
  readonly raw: { readonly req: InjectedRequest }
}

export interface InjectedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly rawHeaders: readonly string[]
  readonly _lightMyRequest?: { readonly payload?: unknown }
}

type Callback = (error: Error | null, answer: Injected) => void
type Inject = (this: Fastify, options: unknown, callback?: Callback) => unknown

interface Fastify {
  readonly server: Server
  inject: Inject
}

interface Recording {
  readonly recorder: Recorder
  ended(answer: HttpAnswer): Ended
  inputOf(request: InjectedRequest, body: string): HttpInput
  sendTo(server: Server): Send
}

/** Of applications that are made from now on, until what is returned is called. */
export function recordInject({ recorder, ended, inputOf, sendTo }: Recording): () => void {
  const wrap = (message: unknown): void => {
    const { fastify } = message as { readonly fastify: Fastify }
    const { inject } = fastify
    fastify.inject = function (options, callback) {
      // Without options it gives a chain that is not sent yet.
      if (options === undefined) return inject.call(this, options)
      let made: Injected | undefined
      const known = (): Known => {
        const request = made?.raw.req ?? { rawHeaders: [] }
        const body = request._lightMyRequest?.payload
        const isText = typeof body === 'string' || Buffer.isBuffer(body)
        const input = inputOf(request, isText ? body.toString() : '')
        return { name: endpointOf(input), input, send: sendTo(this.server) }
      }
      const work = async (): Promise<Injected> => {
        made = (await inject.call(this, options)) as Injected
        return made
      }
      const answer = recorder.around(known, work, {
        answered: ({ statusCode, payload }) => ended(answerOf(statusCode, payload)),
        threw: (error) => ({ answer: error, said: 'failed' }),
      })
      if (callback === undefined) return answer
      callbackify(() => answer)(callback)
      return undefined
    }
  }
  subscribe('fastify.initialization', wrap)
  return () => void unsubscribe('fastify.initialization', wrap)
}
