import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { type FlowIdentity, flowIdentity } from './flow-identity.ts'

/** Connections that code of flows opened to other servers: Redis, a mail server, another database. */
export interface Sockets {
  /** Something was written for the flow, and nothing has come back since. */
  waits(identity: FlowIdentity): boolean
  stop(): void
}

/** For whom was written last, of the sockets on which nothing has come back since. */
const asked = new Map<Socket, FlowIdentity>()
let watching = false

/** Connections from now on are seen, also those that outlive a run. */
export function watchSockets(): Sockets {
  if (!watching) {
    watching = true
    subscribe('net.client.socket', (message) =>
      watch((message as { readonly socket: Socket }).socket),
    )
  }
  return {
    waits: (identity) => [...asked.values()].includes(identity),
    stop() {
      for (const [socket, identity] of asked) if (identity.over) asked.delete(socket)
    },
  }
}

type Method = (this: unknown, ...values: unknown[]) => unknown

/** Reading of one's own would take data away from whoever reads, so both ways are looked at as they are called. */
function watch(socket: Socket): void {
  // Looked up at each call: others who watch come and go.
  const inherited = (name: 'write' | 'push'): Method =>
    Reflect.get(Object.getPrototypeOf(socket) as object, name) as Method
  Reflect.set(socket, 'write', function (this: unknown, ...values: unknown[]): unknown {
    const identity = flowIdentity.getStore()
    if (identity) asked.set(socket, identity)
    return inherited('write').apply(this, values)
  })
  Reflect.set(socket, 'push', function (this: unknown, ...values: unknown[]): unknown {
    asked.delete(socket)
    return inherited('push').apply(this, values)
  })
  socket.once('close', () => asked.delete(socket))
}
