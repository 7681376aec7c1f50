import { randomUUID } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { type FlowIdentity, flowIdentity } from './flow-identity.ts'

/**
 * Whose request it is, over a socket: a server in the same process takes up the context of the flow that called it. The
 * header is sent to this machine only.
 */
const header = 'x-holdfast-race-flow'
const here = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(:\d+)?$/

const known = new Map<string, FlowIdentity>()
let carrying = false

/** The parts of a request of undici, which is what fetch uses. */
interface UndiciRequest {
  readonly origin: string | URL
  addHeader(name: string, value: string): unknown
}

/** From now on requests of these flows are known on arrival; ends with the call of what is returned. */
export function carryIdentities(identities: readonly FlowIdentity[]): () => void {
  if (!carrying) carry()
  const ids = identities.map((identity) => {
    const id = randomUUID()
    known.set(id, identity)
    return id
  })
  return () => {
    for (const id of ids) known.delete(id)
  }
}

function idOf(identity: FlowIdentity | undefined): string | undefined {
  for (const [id, one] of known) if (one === identity) return id
  return undefined
}

function carry(): void {
  carrying = true
  subscribe('undici:request:create', (message) => {
    const { request } = message as { readonly request: UndiciRequest }
    const id = idOf(flowIdentity.getStore())
    if (id !== undefined && here.test(new URL(request.origin).host)) request.addHeader(header, id)
  })
  subscribe('http.client.request.created', (message) => {
    const { request } = message as { readonly request: ClientRequest }
    const id = idOf(flowIdentity.getStore())
    if (id !== undefined && here.test(String(request.getHeader('host') ?? '')))
      request.setHeader(header, id)
  })
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { readonly request: IncomingMessage }
    const id = request.headers[header]
    // A connection may carry requests of several callers, one after the other.
    flowIdentity.enterWith(typeof id === 'string' ? known.get(id) : undefined)
  })
}
