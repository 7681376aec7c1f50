import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Stands for the bank in tests: charges every card. */
export async function openBank(): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((_, response) => response.end())
  return { url: await listen(server), close: () => void server.close() }
}

/** The address of a server that listens from now on. */
export async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
