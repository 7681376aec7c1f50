/** Requests of `node:http` and `node:https` to other machines, which most clients are made of: recorded, and answered. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Agent, type ClientRequest, createServer, type IncomingMessage } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import {
  answerHeaders,
  type Asking,
  hasBody,
  type Heard,
  type HeardList,
  notSent,
} from './heard.ts'

type Method = (this: ClientRequest, chunk?: unknown, ...rest: unknown[]) => unknown

/** Requests that are wanted are written down with their answers, until it is disposed of. */
export function recordHttp({
  isWanted,
  heard,
}: {
  isWanted(host: string): boolean
  readonly heard: HeardList
}): Disposable {
  const bodies = new WeakMap<ClientRequest, () => string>()
  const created = (message: unknown): void => {
    const { request } = message as { readonly request: ClientRequest }
    if (isWanted(new URL(urlOf(request)).host)) bodies.set(request, collectSent(request))
  }
  const answered = (message: unknown): void => {
    const { request, response } = message as {
      readonly request: ClientRequest
      readonly response: IncomingMessage
    }
    const body = bodies.get(request)
    if (body === undefined) return
    const text = collectReceived(response)
    response.once('end', () => {
      const { method } = request
      const headers = Object.entries(response.headers).flatMap(
        ([name, value]): [string, string][] =>
          typeof value === 'string' ? [[name, value]] : (value ?? []).map((one) => [name, one]),
      )
      const status = response.statusCode ?? 0
      heard.push({ method, url: urlOf(request), body: body(), status, headers, text: text() })
    })
  }
  subscribe('http.client.request.created', created)
  subscribe('http.client.response.finish', answered)
  return {
    [Symbol.dispose]() {
      unsubscribe('http.client.request.created', created)
      unsubscribe('http.client.response.finish', answered)
    },
  }
}

interface Connecting {
  readonly host?: string
  readonly port?: number | string
}

type AddRequest = (
  this: Agent,
  request: ClientRequest,
  options: Connecting,
  ...rest: unknown[]
) => void

/** What a request is given for a socket. */
interface Reachable {
  onSocket(socket: Duplex): void
  shouldKeepAlive: boolean
}

/** Requests to others get a stream of this process in the place of a connection, and what was heard through it. */
export function answerHttp({
  isOurs,
  answerOf,
}: {
  isOurs(host: string): boolean
  answerOf(asking: Asking): Heard | undefined
}): Disposable {
  const prototype = Agent.prototype as unknown as { addRequest: AddRequest }
  const { addRequest } = prototype
  const origins = new WeakMap<object, { readonly origin: string; readonly client: Duplex }>()
  const server = createServer((request, response) => {
    const known = origins.get(request.socket)
    if (known === undefined) return response.destroy()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => {
      const { method = 'GET', url = '/' } = request
      const asking = { method, url: known.origin + url, body: Buffer.concat(chunks).toString() }
      const found = answerOf(asking)
      if (found === undefined) {
        known.client.destroy(notSent(asking))
        return
      }
      response.writeHead(found.status, answerHeaders(found).flat())
      response.end(hasBody(found) ? found.text : undefined)
    })
    return undefined
  })
  prototype.addRequest = function (request, options, ...rest) {
    const { origin, host } = new URL(urlOf(request))
    if (isOurs(host)) return addRequest.call(this, request, options, ...rest)
    const [client, other] = duplexPair()
    for (const end of [client, other]) likeSocket(end, origin)
    origins.set(other, { origin, client })
    const reachable = request as unknown as Reachable
    reachable.shouldKeepAlive = false
    reachable.onSocket(client)
    server.emit('connection', other)
  }
  return {
    [Symbol.dispose]() {
      prototype.addRequest = addRequest
    },
  }
}

/** What clients call of a socket. */
function likeSocket(stream: Duplex, origin: string): void {
  const same = (): Duplex => stream
  const isSecure = origin.startsWith('https:')
  Object.assign(stream, {
    setTimeout: same,
    setNoDelay: same,
    setKeepAlive: same,
    ref: same,
    unref: same,
    destroySoon: () => stream.end(),
    ...(isSecure && { encrypted: true, authorized: true }),
  })
}

function urlOf(request: ClientRequest): string {
  const { protocol, path } = request
  const host = String(request.getHeader('host') ?? request.host)
  return new URL(path.startsWith('/') ? `${protocol}//${host}${path}` : path).href
}

function collectSent(request: ClientRequest): () => string {
  const chunks: Buffer[] = []
  for (const name of ['write', 'end'] as const) {
    const method = Reflect.get(request, name) as Method
    const writing: Method = function (chunk, ...rest) {
      if (typeof chunk === 'string') chunks.push(Buffer.from(chunk))
      else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk))
      return method.call(this, chunk, ...rest)
    }
    Reflect.set(request, name, writing)
  }
  return () => Buffer.concat(chunks).toString()
}

function collectReceived(response: IncomingMessage): () => string {
  const chunks: Buffer[] = []
  const { push } = response
  response.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (Buffer.isBuffer(chunk)) chunks.push(chunk)
    return push.call(response, chunk, encoding)
  }
  return () => decoded(Buffer.concat(chunks), response.headers['content-encoding']).toString()
}

function decoded(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(body)
  if (encoding === 'deflate') return inflateSync(body)
  return encoding === 'br' ? brotliDecompressSync(body) : body
}
