import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/**
 * A port nobody listens on at this moment. Another process may take it before our server binds it,
 * so whoever starts a server must be ready to try again with another port.
 */
export async function freePort(host: string): Promise<number> {
  const probe = createServer()
  probe.listen(0, host)
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
