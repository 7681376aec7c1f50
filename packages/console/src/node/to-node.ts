import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { rememberContext } from '../http/request-context.ts'
import type { HoldfastConsole } from '../server/create-console.ts'

/** What Express adds to a request. */
interface MountedMessage extends IncomingMessage {
  readonly baseUrl?: string
  readonly originalUrl?: string
  /** What a body parser that came before us has made of the body. */
  readonly body?: unknown
}

/** A listener of `node:http`, which is also a middleware of Express. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void

/**
 * The console for `node:http`, and for Express under any path.
 *
 * @example app.use('/holdfast', toNode(holdfastConsole))
 */
export function toNode(holdfastConsole: Pick<HoldfastConsole, 'fetch'>): NodeListener {
  return (message, response) => {
    const { originalUrl, baseUrl } = message as MountedMessage
    void serve(holdfastConsole, message, response, { url: originalUrl, base: baseUrl })
  }
}

/** One request, whose `url` starts with `base`. Resolves when the answer is out, or nobody wants it any more. */
export async function serve(
  { fetch }: Pick<HoldfastConsole, 'fetch'>,
  message: IncomingMessage,
  response: ServerResponse,
  {
    url = message.url,
    base,
  }: { readonly url?: string | undefined; readonly base: string | undefined },
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    const request = requestOf(message, url, gone.signal)
    if (request === undefined) return refuse(message, response)
    rememberContext(request, { address: message.socket.remoteAddress, base: base || undefined })
    await send(await fetch(request), message, response, gone.signal)
  } catch {
    // The connection broke while the answer was on its way; there is nobody to tell.
    response.destroy()
  }
}

function requestOf(
  message: IncomingMessage,
  url: string | undefined,
  signal: AbortSignal,
): Request | undefined {
  const { method = 'GET', headers, socket } = message
  // An absolute form or `*` is for proxies; two slashes would be read as a host.
  if (url === undefined || !url.startsWith('/') || url.startsWith('//')) return undefined
  const secure = 'encrypted' in socket && socket.encrypted === true
  const target = URL.parse(url, `${secure ? 'https' : 'http'}://${hostOf(headers.host)}`)
  if (target === null) return undefined
  const ours = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(':')) continue
    for (const one of Array.isArray(value) ? value : [value ?? '']) ours.append(name, one)
  }
  const body = method === 'GET' || method === 'HEAD' ? null : bodyOf(message)
  try {
    const init: RequestInit & { duplex: 'half' } = {
      method,
      headers: ours,
      body,
      signal,
      duplex: 'half',
    }
    return new Request(target, init)
  } catch {
    // A method that fetch does not know.
    return undefined
  }
}

/** Only a name goes into the address that we make; what was sent stays in the header, and is judged there. */
function hostOf(host: string | undefined): string {
  return host !== undefined && /^[\w.-]+(:\d{1,5})?$|^\[[\da-f:]+\](:\d{1,5})?$/i.test(host)
    ? host
    : 'localhost'
}

function bodyOf(message: MountedMessage): ReadableStream<Uint8Array> | string | null {
  if (!message.readableEnded && !message.readableDidRead) {
    return Readable.toWeb(message) as ReadableStream<Uint8Array>
  }
  // A body parser was faster. What it made is JSON again, and as large as it was.
  return message.body === undefined ? null : JSON.stringify(message.body)
}

async function send(
  answer: Response,
  message: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  for (const [name, value] of answer.headers) response.setHeader(name, value)
  // What was not read is not waited for: the next request on this connection could not be told from it.
  if (!message.complete && !message.readableEnded) response.setHeader('connection', 'close')
  response.writeHead(answer.status)
  const reader = (answer.body as ReadableStream<Uint8Array> | null)?.getReader()
  if (reader === undefined) {
    response.end()
    return
  }
  const stop = (): void => void reader.cancel().catch(() => undefined)
  signal.addEventListener('abort', stop, { once: true })
  for (;;) {
    const { done, value } = await reader.read()
    if (done || signal.aborted) break
    if (!response.write(value)) await drained(response, signal)
  }
  response.end()
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  response.once('drain', resolve)
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}

function refuse(message: IncomingMessage, response: ServerResponse): void {
  message.resume()
  response.writeHead(400, { connection: 'close', 'content-type': 'text/plain; charset=utf-8' })
  response.end('The request is not understood.\n')
}
