import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A wire between client and server that a test can hold or cut at a chosen moment. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  /** Keeps what the server says from reaching the client. */
  hold(): void
  /** Delivers what was held and everything after it. */
  release(): void
  /** Ends both directions at once, without delivering what was held. */
  cut(): void
}

export async function tcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const pairs = new Set<{ client: Socket; server: Socket }>()
  let held = false
  const listener = createServer((client) => {
    const server = connect(target)
    const pair = { client, server }
    pairs.add(pair)
    client.on('data', (chunk) => server.write(chunk))
    server.on('data', (chunk) => client.write(chunk))
    if (held) server.pause()
    // A held end of the stream is held like its data: it is only read after the data.
    server.on('end', () => client.end())
    server.on('error', () => client.destroy())
    client.on('error', () => server.destroy())
    client.on('close', () => {
      server.destroy()
      pairs.delete(pair)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  const cut = (): void => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }
  return {
    port,
    hold() {
      held = true
      for (const { server } of pairs) server.pause()
    },
    release() {
      held = false
      for (const { server } of pairs) server.resume()
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut()
      listener.close()
      await once(listener, 'close')
    },
  }
}
