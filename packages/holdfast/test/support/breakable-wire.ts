import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { resetSocket } from '@holdfast/testkit'

/** A wire between client and server that a test can hold, cut or break at a chosen moment. */
export interface BreakableWire extends AsyncDisposable {
  /** The database, through the wire. */
  readonly url: string
  /** How often a client has spoken after the server did. */
  roundTrips(): number
  /** Keeps what the server says from reaching the client. */
  hold(): void
  /** Delivers what was held and everything after it. */
  release(): void
  /** Ends both directions at once, without delivering what was held. */
  cut(): void
  /** The client gets a reset; the server hears nothing. */
  reset(): void
  /** As if nobody was there: everything is cut, and whoever comes is turned away, until `release`. */
  refuse(): void
}

/** `lateMs`: how much later than a failure the server's word on the transaction arrives, as networks have it. */
export async function breakableWire(target: string, lateMs = 0): Promise<BreakableWire> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<{ near: Socket; far: Socket }>()
  let roundTrips = 0
  let held = false
  let refusing = false
  const listener = createServer((near) => {
    if (refusing) {
      near.on('error', () => undefined)
      resetSocket(near)
      return
    }
    const far = connect({ host: hostname, port: Number(port) })
    const pair = { near, far }
    pairs.add(pair)
    if (held) far.pause()
    let answered = true
    near.on('data', (chunk) => {
      if (answered) roundTrips += 1
      answered = false
      far.write(chunk)
    })
    far.on('data', (chunk) => {
      answered = true
      const at = lateMs > 0 ? readyAfterFailure(chunk) : -1
      if (at === -1) near.write(chunk)
      else {
        near.write(chunk.subarray(0, at))
        setTimeout(() => near.write(chunk.subarray(at)), lateMs)
      }
    })
    near.on('end', () => far.end())
    // A held end of the stream is held like its data: it is only read after the data.
    far.on('end', () => near.end())
    // Each end learns of the other by the code above, or must not.
    near.on('error', () => undefined)
    far.on('error', () => near.destroy())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const url = new URL(target)
  url.port = String((listener.address() as { port: number }).port)
  const cut = (): void => {
    for (const { near, far } of pairs) {
      near.destroy()
      far.destroy()
    }
  }
  return {
    url: url.href,
    roundTrips: () => roundTrips,
    hold() {
      held = true
      for (const { far } of pairs) far.pause()
    },
    release() {
      held = false
      refusing = false
      for (const { far } of pairs) far.resume()
    },
    cut,
    reset() {
      for (const { near } of pairs) resetSocket(near)
    },
    refuse() {
      refusing = true
      cut()
    },
    async [Symbol.asyncDispose]() {
      cut()
      listener.close()
      await once(listener, 'close')
    },
  }
}

/** Where ReadyForQuery begins, at the end of what tells of a failed statement; -1 if it does not. */
function readyAfterFailure(chunk: Buffer): number {
  const at = chunk.length - 6
  return chunk[0] === 0x45 && chunk[at] === 0x5a ? at : -1
}
