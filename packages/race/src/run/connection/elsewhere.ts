import { type AsyncHook, createHook } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type FlowIdentity, flowIdentity } from './flow-identity.ts'
import { type Sockets, watchSockets } from './sockets.ts'

/** Longer ones are limits that somebody sets, not pauses that somebody makes. */
const longestPauseMs = 2000

interface Timer {
  hasRef(): boolean
  readonly _idleTimeout: number
  readonly _repeat: number | null
}

/** What flows have under way besides SQL. */
export interface Elsewhere {
  /** What the flow will go on from by itself, for people; undefined if nothing is known. */
  waits(identity: FlowIdentity): string | undefined
  stop(): void
}

/** Work of the system that calls back once: files, name lookups, cryptography, processes, threads. */
const once =
  /^(FSREQ|FILEHANDLECLOSEREQ|GET(ADDR|NAME)INFOREQWRAP|QUERYWRAP|PROCESSWRAP|WORKER|(TCP|PIPE)CONNECTWRAP)|(?<!HTTPCLIENT)REQUEST$/

interface Message {
  readonly request: object
}

interface Channel {
  readonly name: string
  readonly hear: (message: unknown) => void
}

/**
 * Watches what code of a flow has begun and not ended: pauses, requests over HTTP, answers of other servers, work in
 * threads and processes. Such a wait before a statement is to the others the same as a statement that waits at the
 * gate, so it is waited for.
 */
export function watchElsewhere(): Elsewhere {
  const timers = new Map<number, { readonly identity: FlowIdentity; readonly timer: Timer }>()
  const works = new Map<number, { readonly identity: FlowIdentity; readonly type: string }>()
  const requests = new Map<object, FlowIdentity>()
  const sockets: Sockets = watchSockets()
  const hook: AsyncHook = createHook({
    init(id, type, _, resource) {
      const isTimer = type === 'Timeout'
      if (!isTimer && !once.test(type)) return
      const identity = flowIdentity.getStore()
      if (!identity) return
      if (isTimer) timers.set(id, { identity, timer: resource as Timer })
      else works.set(id, { identity, type })
    },
    after(id) {
      works.delete(id)
    },
    destroy(id) {
      timers.delete(id)
      works.delete(id)
    },
    // Promises are of no interest; to watch them too would cost.
    trackPromises: false,
  })
  hook.enable()

  const begun = (message: unknown): void => {
    const identity = flowIdentity.getStore()
    if (identity) requests.set((message as Message).request, identity)
  }
  const ended = (message: unknown): void => {
    requests.delete((message as Message).request)
  }
  const channels: Channel[] = [
    { name: 'undici:request:create', hear: begun },
    { name: 'undici:request:trailers', hear: ended },
    { name: 'undici:request:error', hear: ended },
    { name: 'http.client.request.start', hear: begun },
    { name: 'http.client.response.finish', hear: ended },
    { name: 'http.client.request.error', hear: ended },
  ]
  for (const { name, hear } of channels) subscribe(name, hear)

  function pauses(identity: FlowIdentity): boolean {
    return [...timers.values()].some(
      ({ identity: owner, timer }) =>
        owner === identity &&
        timer._repeat === null &&
        timer._idleTimeout >= 0 &&
        timer._idleTimeout <= longestPauseMs &&
        timer.hasRef(),
    )
  }

  return {
    waits(identity) {
      if ([...requests.values()].includes(identity)) return 'an answer over HTTP'
      const work = [...works.values()].find(({ identity: owner }) => owner === identity)
      if (work) return `work outside the event loop (${work.type})`
      if (sockets.waits(identity)) return 'an answer of another server'
      return pauses(identity) ? 'a timer' : undefined
    },
    stop() {
      hook.disable()
      sockets.stop()
      for (const { name, hear } of channels) unsubscribe(name, hear)
    },
  }
}
