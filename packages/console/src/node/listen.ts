import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HoldfastConsole } from '../server/create-console.ts'
import { toNode } from './to-node.ts'

/** How long and how much somebody may keep a connection busy. */
export interface ServerLimits {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly maxConnections: number
  readonly maxHeaderBytes: number
}

export const serverLimits: ServerLimits = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  // Events beat every ten seconds; whoever takes nothing for so long has gone.
  idleTimeoutMs: 30_000,
  maxConnections: 200,
  maxHeaderBytes: 8_192,
}

/** A console that listens. */
export interface ListeningConsole {
  readonly port: number
  close(): Promise<void>
}

/** Serves a console on a port of its own, to peers who may not mean well. */
export async function listen(
  holdfastConsole: HoldfastConsole,
  { port, host }: { readonly port: number; readonly host: string },
  limits: ServerLimits = serverLimits,
): Promise<ListeningConsole> {
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs / 4),
      keepAliveTimeout: 5_000,
      maxHeaderSize: limits.maxHeaderBytes,
      insecureHTTPParser: false,
      requireHostHeader: true,
    },
    toNode(holdfastConsole),
  )
  server.maxConnections = limits.maxConnections
  server.maxHeadersCount = 64
  server.timeout = limits.idleTimeoutMs
  // Nothing here speaks another protocol, and nobody is asked to go on.
  server.on('upgrade', (_request, socket) => socket.destroy())
  server.on('checkExpectation', (_request, response) => response.writeHead(417).end())
  await started(server, port, host)
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      holdfastConsole.close()
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      server.closeAllConnections()
      await closed.promise
    },
  }
}

function started(server: Server, port: number, host: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, host, () => {
    server.off('error', reject)
    resolve()
  })
  return promise
}
