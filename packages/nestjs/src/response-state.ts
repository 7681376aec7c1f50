/** What is read and put back of Node's response, and of Fastify's reply around it. */
interface Response {
  statusCode: number
  statusMessage: string | undefined
  readonly headersSent: boolean
  getHeaders(): Readonly<Record<string, unknown>>
  setHeader(name: string, value: unknown): unknown
  removeHeader(name: string): unknown
}

interface Reply {
  readonly raw: Response
  getHeaders(): Readonly<Record<string, unknown>>
  header(name: string, value: unknown): unknown
  removeHeader(name: string): unknown
}

/**
 * Remembers the status and the headers of a response as they are. What is returned puts them back: a handler that runs
 * again must find what it found before, because what its first run has set is part of the work that was undone.
 */
export function stateOf(response: object): () => void {
  if (!('raw' in response)) return stateOfRaw(response as Response)
  const reply = response as Reply
  const putBackRaw = stateOfRaw(reply.raw)
  // Those of the reply itself: it shows them together with Node's.
  const raw = reply.raw.getHeaders()
  const own = Object.entries(reply.getHeaders()).filter(([name, value]) => raw[name] !== value)
  return () => {
    if (reply.raw.headersSent) return
    // Takes them away from Node's response as well, which gets its own back after it.
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
    for (const [name, value] of own) reply.header(name, value)
    putBackRaw()
  }
}

function stateOfRaw(raw: Response): () => void {
  const { statusCode, statusMessage } = raw
  const headers = Object.entries(raw.getHeaders()).filter(([, value]) => value !== undefined)
  return () => {
    if (raw.headersSent) return
    raw.statusCode = statusCode
    raw.statusMessage = statusMessage
    for (const name of Object.keys(raw.getHeaders())) raw.removeHeader(name)
    for (const [name, value] of headers) raw.setHeader(name, value)
  }
}

/** The responses among the arguments of a method: Express's, Fastify's, or that of a request of Express. */
export function responsesIn(args: readonly unknown[]): readonly object[] {
  const found = args.flatMap((given) => {
    if (typeof given !== 'object' || given === null) return []
    const { res } = given as { readonly res?: unknown }
    return [given, res].filter((each) => isResponse(each))
  })
  return [...new Set(found)]
}

function isResponse(given: unknown): given is object {
  if (typeof given !== 'object' || given === null) return false
  const { raw } = given as { readonly raw?: unknown }
  return isNodes(given) || (typeof raw === 'object' && raw !== null && isNodes(raw))
}

function isNodes(given: object): boolean {
  const { writeHead, getHeaders, end } = given as Readonly<Record<string, unknown>>
  return [writeHead, getHeaders, end].every((method) => typeof method === 'function')
}
