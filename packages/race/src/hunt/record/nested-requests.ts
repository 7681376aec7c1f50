/** Requests that a call makes itself, to another server of this process: they are part of it, and wait for nobody. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Recorder } from './record-calls.ts'

const header = 'x-holdfast-hunt-within'
const here = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(:\d+)?$/

interface UndiciRequest {
  readonly origin: string | URL
  addHeader(name: string, value: string): unknown
}

/** Marks them until what is returned is called; only what goes to this machine. */
export function markNested(recorder: Pick<Recorder, 'isWithin'>): () => void {
  const ofFetch = (message: unknown): void => {
    const { request } = message as { readonly request: UndiciRequest }
    if (recorder.isWithin() && here.test(new URL(request.origin).host))
      request.addHeader(header, '1')
  }
  const ofHttp = (message: unknown): void => {
    const { request } = message as { readonly request: ClientRequest }
    if (recorder.isWithin() && here.test(String(request.getHeader('host') ?? ''))) {
      request.setHeader(header, '1')
    }
  }
  subscribe('undici:request:create', ofFetch)
  subscribe('http.client.request.created', ofHttp)
  return () => {
    unsubscribe('undici:request:create', ofFetch)
    unsubscribe('http.client.request.created', ofHttp)
  }
}

export function nestedIn({ headers }: IncomingMessage): boolean {
  return headers[header] !== undefined
}
