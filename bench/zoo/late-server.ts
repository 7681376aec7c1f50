import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Answers after as many milliseconds as its path says. */
export async function startLateServer(): Promise<AsyncDisposable & { readonly origin: string }> {
  const server = createServer((request, response) => {
    setTimeout(() => response.end('ok'), Number(request.url?.slice(1)))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
