import { randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { traceOf } from '../../core/trace-mark.ts'
import { type FlowIdentity, flowIdentity } from './flow-identity.ts'

/**
 * Whose request it is, over a socket: a server in the same process takes up the context of the flow that called it. The
 * header is sent to this machine only.
 */
const header = 'x-holdfast-race-flow'
const here = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(:\d+)?$/

const known = new Map<string, FlowIdentity>()
let carrying = false

/** Whose statement or request it is that names this trace. */
export function identityOf(trace: string | undefined): FlowIdentity | undefined {
  return trace === undefined ? undefined : known.get(trace)
}

/** What says in another process whose request it is, by the standard of W3C Trace Context. */
export function traceparentOf(identity: FlowIdentity): string {
  return `00-${idOf(identity) ?? '0'.repeat(32)}-${spanOf()}-01`
}

function spanOf(): string {
  return randomBytes(8).toString('hex')
}

/** The parts of a request of undici, which is what fetch uses. */
interface UndiciRequest {
  readonly origin: string | URL
  readonly headers: unknown
  addHeader(name: string, value: string): unknown
}

/** From now on requests of these flows are known on arrival; ends with the call of what is returned. */
export function carryIdentities(identities: readonly FlowIdentity[]): () => void {
  if (!carrying) carry()
  for (const identity of identities) known.set(randomBytes(16).toString('hex'), identity)
  return () => {
    for (const [id, identity] of known) if (identities.includes(identity)) known.delete(id)
  }
}

function idOf(identity: FlowIdentity | undefined): string | undefined {
  for (const [id, one] of known) if (one === identity) return id
  return undefined
}

/** The header to add, unless the request has one of its own, which is then known too. */
function traced(headers: string): string | undefined {
  const identity = flowIdentity.getStore()
  if (!identity) return undefined
  const own = traceOf(headers)
  if (own === undefined) return traceparentOf(identity)
  known.set(own, identity)
  return undefined
}

function carry(): void {
  carrying = true
  subscribe('undici:request:create', (message) => {
    const { request } = message as { readonly request: UndiciRequest }
    const id = idOf(flowIdentity.getStore())
    if (id === undefined || !here.test(new URL(request.origin).host)) return
    request.addHeader(header, id)
    const traceparent = traced(String(request.headers))
    if (traceparent !== undefined) request.addHeader('traceparent', traceparent)
  })
  subscribe('http.client.request.created', (message) => {
    const { request } = message as { readonly request: ClientRequest }
    const id = idOf(flowIdentity.getStore())
    if (id === undefined || !here.test(String(request.getHeader('host') ?? ''))) return
    request.setHeader(header, id)
    const traceparent = traced(String(request.getHeader('traceparent') ?? ''))
    if (traceparent !== undefined) request.setHeader('traceparent', traceparent)
  })
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { readonly request: IncomingMessage }
    const id = request.headers[header]
    // A connection may carry requests of several callers, one after the other.
    flowIdentity.enterWith(typeof id === 'string' ? known.get(id) : undefined)
  })
}
