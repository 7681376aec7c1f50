import { createServer, type Socket } from 'node:net'
import { placeBehind } from './call-places.ts'
import { type Gate, type GateSite, openGate } from './open-gate.ts'

/** A port of this machine behind which every connection has a gate. */
export interface GateListener {
  readonly port: number
  /**
   * Takes no more clients. Those that are connected stay, since a client whose connection is cut may
   * take the process with it; but they do not keep the process alive.
   */
  close(): void
}

/** Listens on a free port, for clients that can only be given an address. */
export async function listen(site: GateSite): Promise<GateListener> {
  const clients = new Map<Socket, Gate>()
  const server = createServer({ noDelay: true }, (client) => {
    const gate = openGate(site, {
      toClient: (bytes) => void client.write(bytes),
      closed: (error) => {
        if (error) client.destroy()
        else client.end()
      },
      placeOfClient: () => placeBehind(client.remotePort),
    })
    clients.set(client, gate)
    client.on('data', gate.fromClient)
    // A client that vanishes is the same to the server as one that says goodbye without a word.
    client.on('error', () => client.destroy())
    client.on('close', () => {
      clients.delete(client)
      gate.clientGone()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the listener has no port')

  return {
    port: address.port,
    close() {
      server.close()
      for (const [client, gate] of clients) {
        client.unref()
        gate.unref()
      }
    },
  }
}
