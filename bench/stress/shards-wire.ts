import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** The way to a server: open, a black hole that swallows everything, or closed as if nobody was there. */
export type WireState = 'open' | 'silent' | 'down'

/** A way to a server that can be broken. */
export interface Wire extends AsyncDisposable {
  readonly url: string
  /** What was swallowed by a black hole is delivered when the way is open again, as TCP would. */
  set(state: WireState): void
}

export async function wireTo(target: string): Promise<Wire> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<readonly [near: Socket, far: Socket]>()
  let state: WireState = 'open'
  const listener = createServer((near) => {
    near.on('error', () => undefined)
    if (state === 'down') {
      near.destroy()
      return
    }
    const far = connect({ host: hostname, port: Number(port) })
    const pair = [near, far] as const
    pairs.add(pair)
    if (state === 'silent') for (const socket of pair) socket.pause()
    far.on('error', () => near.destroy())
    near.on('data', (chunk) => far.write(chunk))
    far.on('data', (chunk) => near.write(chunk))
    near.on('close', () => {
      far.destroy()
      pairs.delete(pair)
    })
    far.on('close', () => {
      // Whoever is in a black hole does not hear of the end either.
      if (state !== 'silent') near.destroy()
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const url = new URL(target)
  url.port = String((listener.address() as AddressInfo).port)
  const cut = (): void => {
    for (const [near, far] of pairs) {
      near.destroy()
      far.destroy()
    }
  }
  return {
    url: url.href,
    set(next) {
      state = next
      if (next === 'down') cut()
      for (const [near, far] of pairs) {
        for (const socket of [near, far]) {
          if (next === 'silent') socket.pause()
          else socket.resume()
        }
        if (next === 'open' && far.destroyed) near.destroy()
      }
    },
    async [Symbol.asyncDispose]() {
      cut()
      listener.close()
      await once(listener, 'close')
    },
  }
}
