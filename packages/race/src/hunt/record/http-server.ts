/** Requests to the servers of this process: recorded when they arrive, and sent again to the same listeners. */
import { createServer, type IncomingMessage, Server, type ServerResponse } from 'node:http'
import { Server as SecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { answerOf, endpointOf, type HttpAnswer, keptHeaders, requestInit } from './http-input.ts'
import type { HttpInput, Send } from '../model.ts'
import type { Ended, Known, Recorder } from './record-calls.ts'
import { type InjectedRequest, recordInject } from './inject.ts'
import { markNested, nestedIn } from './nested-requests.ts'

/** What answers requests: a server of anybody's, or a listener of ours. */
export interface Answering {
  emit(event: 'request', request: IncomingMessage, response: ServerResponse): boolean
}

type Emit = (this: Server, event: string, ...values: unknown[]) => boolean

export interface Servers extends AsyncDisposable {
  /** From now on requests are calls, until what is returned is called. */
  record(recorder: Recorder, ended: (answer: HttpAnswer) => Ended): () => void
  /** A server for a listener that nobody serves, with its address. */
  serve(listener: (request: IncomingMessage, response: ServerResponse) => void): Promise<string>
  /** Sends requests to a server, or to what listens as one, wherever it listens. */
  sendTo(target: Answering): Send
}

/** One of `node:https` is no heir of one of `node:http`; both emit what every emitter does. */
const kinds = [Server, SecureServer]

/** `send` is how requests are sent again: the fetch that nobody has replaced. */
export function createServers(send: typeof fetch = fetch): Servers {
  const opened: Server[] = []
  const origins = new WeakMap<object, Promise<string>>()

  async function open(server: Server): Promise<string> {
    server.unref()
    opened.push(server)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** The server that was recorded may be closed by now; its listeners answer all the same. */
  function originOf(target: Answering): Promise<string> {
    const known = origins.get(target)
    if (known) return known
    const origin = open(
      createServer((request, response) => target.emit('request', request, response)),
    )
    origins.set(target, origin)
    return origin
  }

  const sendTo =
    (target: Answering): Send =>
    async (input) => {
      if (input.kind !== 'http') throw new Error('a request is needed')
      const response = await send((await originOf(target)) + input.path, requestInit(input))
      return answerOf(response.status, await response.text())
    }

  return {
    record(recorder, ended) {
      const emit = Reflect.get(Server.prototype, 'emit') as Emit
      const recording: Emit = function (event, ...values) {
        if (event !== 'request') return emit.call(this, event, ...values)
        const [request, response] = values as [IncomingMessage, ServerResponse]
        if (nestedIn(request)) return emit.call(this, event, ...values)
        const body = collectBody(request)
        const answer = collectAnswer(response)
        const known = (): Known => {
          const input = inputOf(request, body())
          return { name: endpointOf(input), input, send: sendTo(this) }
        }
        const work = (): Promise<HttpAnswer> => {
          emit.call(this, event, ...values)
          return answer
        }
        const over = recorder.around(known, work, {
          answered: ended,
          threw: (error) => ({ answer: error, said: 'failed' }),
        })
        over.catch((error: unknown) => response.destroy(asError(error)))
        return true
      }
      for (const one of kinds) Reflect.set(one.prototype, 'emit', recording)
      const unmark = markNested(recorder)
      const forget = recordInject({ recorder, ended, inputOf, sendTo })
      return () => {
        forget()
        unmark()
        for (const one of kinds) Reflect.set(one.prototype, 'emit', emit)
      }
    },
    serve: (listener) => open(createServer(listener)),
    sendTo,
    async [Symbol.asyncDispose]() {
      for (const server of opened) {
        server.closeAllConnections()
        server.close()
      }
    },
  }
}

function inputOf(request: InjectedRequest, body: string): HttpInput {
  const headers: [string, string][] = []
  for (let at = 0; at + 1 < request.rawHeaders.length; at += 2) {
    headers.push([request.rawHeaders[at]?.toLowerCase() ?? '', request.rawHeaders[at + 1] ?? ''])
  }
  return {
    kind: 'http',
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    headers: keptHeaders(headers),
    body: body === '' ? undefined : body,
  }
}

/** What arrives, whoever reads it. */
function collectBody(request: IncomingMessage): () => string {
  const chunks: Buffer[] = []
  const { push } = request
  request.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (Buffer.isBuffer(chunk)) chunks.push(chunk)
    return push.call(request, chunk, encoding)
  }
  return () => Buffer.concat(chunks).toString()
}

type Writing = (this: ServerResponse, chunk?: unknown, ...rest: unknown[]) => unknown

/** What is answered, once it is over. */
function collectAnswer(response: ServerResponse): Promise<HttpAnswer> {
  const chunks: Buffer[] = []
  for (const name of ['write', 'end'] as const) {
    const method = Reflect.get(response, name) as Writing
    const writing: Writing = function (chunk, ...rest) {
      if (typeof chunk === 'string') chunks.push(Buffer.from(chunk))
      else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk))
      return method.call(this, chunk, ...rest)
    }
    Reflect.set(response, name, writing)
  }
  return new Promise((resolve) => {
    response.once('close', () =>
      resolve(answerOf(response.statusCode, Buffer.concat(chunks).toString())),
    )
  })
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
