import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Something between client and server that can break, as networks do. */
export interface BreakableWire {
  /** The database, through the wire. */
  readonly url: string
  /** How often a client has spoken after the server did. */
  roundTrips(): number
  /** The client gets a reset; the server hears nothing. */
  reset(): void
  close(): Promise<void>
}

export async function breakableWire(target: string): Promise<BreakableWire> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<{ near: Socket; far: Socket }>()
  let roundTrips = 0
  const listener = createServer((near) => {
    const far = connect({ host: hostname, port: Number(port) })
    const pair = { near, far }
    pairs.add(pair)
    let answered = true
    near.on('data', (chunk) => {
      if (answered) roundTrips += 1
      answered = false
      far.write(chunk)
    })
    far.on('data', (chunk) => {
      answered = true
      near.write(chunk)
    })
    near.on('end', () => far.end())
    far.on('end', () => near.end())
    // Each end learns of the other by the code above, or must not.
    near.on('error', () => undefined)
    far.on('error', () => undefined)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const url = new URL(target)
  url.port = String((listener.address() as { port: number }).port)
  return {
    url: url.href,
    roundTrips: () => roundTrips,
    reset() {
      for (const { near } of pairs) near.resetAndDestroy()
    },
    async close() {
      for (const { near, far } of pairs) {
        near.destroy()
        far.destroy()
      }
      listener.close()
      await once(listener, 'close')
    },
  }
}
