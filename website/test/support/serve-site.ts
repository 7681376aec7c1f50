import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** The built site on a port of this machine, with addresses as GitHub Pages has them. */
export async function serveSite(
  folder: string,
): Promise<AsyncDisposable & { readonly origin: string }> {
  const server = createServer(({ url = '/' }, response) => {
    const { pathname } = new URL(url, 'http://localhost')
    const path = join(folder, normalize(decodeURIComponent(pathname)))
    const file = [path, `${path}.html`, join(path, 'index.html')].find(
      (candidate) => existsSync(candidate) && statSync(candidate).isFile(),
    )
    response.writeHead(file === undefined ? 404 : 200, {
      'content-type': types[extname(file ?? '')] ?? 'text/plain',
    })
    response.end(file === undefined ? 'not found' : readFileSync(file))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
