import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the range that outgoing connections take their ports from. A server that is started again on its
 * port would else find a client sitting on it, and a client that retries could connect to itself.
 */
const lowest = 10_000
const highest = 32_000

/**
 * A port nobody listens on at this moment. Another process may take it before our server binds it,
 * so whoever starts a server must be ready to try again with another port.
 */
export async function freePort(host: string): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = randomInt(lowest, highest)
    const probe = createServer()
    try {
      probe.listen(port, host)
      await once(probe, 'listening')
    } catch (error) {
      if (attempt < 100) continue
      throw error
    }
    probe.close()
    await once(probe, 'close')
    return port
  }
}
