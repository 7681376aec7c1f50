import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { openGuard } from './guard.ts'
import { etcdBinary } from './server-binaries.ts'
import { serviceAccount } from './service-account.ts'
import { waitUntil } from '../wait-until.ts'

/** One etcd, on its own: the place where Patroni keeps who is the primary. */
export interface Etcd extends AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly logFile: string
}

const host = '127.0.0.1'
const diskMb = 200

/** Starts an etcd with its own data and ports; it is gone when this process ends, however it ends. */
export async function startEtcd(): Promise<Etcd> {
  const file = etcdBinary()
  // In memory where that can be had: a slow disk would look like an etcd that is gone.
  const guard = await openGuard('etcd', await serviceAccount(), diskMb)
  const stop = async (): Promise<void> => await guard.stop('SIGTERM')
  try {
    for (let attempt = 1; ; attempt += 1) {
      const [port, peerPort] = [await freePort(host), await freePort(host)]
      const [clients, peers] = [`http://${host}:${port}`, `http://${host}:${peerPort}`]
      const settings = {
        name: 'holdfast',
        'data-dir': join(guard.folder, 'data', 'etcd'),
        'listen-client-urls': clients,
        'advertise-client-urls': clients,
        'listen-peer-urls': peers,
        'initial-advertise-peer-urls': peers,
        'initial-cluster': `holdfast=${peers}`,
        'initial-cluster-token': guard.folder,
        // A machine that is busy is not a machine that is gone.
        'heartbeat-interval': '500',
        'election-timeout': '5000',
      }
      await guard.serve({
        file,
        args: Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
      })
      const log = await waitUntil(
        'etcd answers',
        async () => {
          const ended = guard.ended()
          if (ended !== undefined) return ended
          return (await isHealthy(clients)) ? '' : undefined
        },
        { limitMs: 60_000, everyMs: 50 },
      )
      if (log === '') {
        return { host, port, logFile: guard.logFile, [Symbol.asyncDispose]: stop }
      }
      // Someone took a port between our look and etcd's bind.
      if (attempt < 5 && log.includes('address already in use')) continue
      throw new Error(`etcd did not start:\n${log}`)
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) })
    const { health } = (await answer.json()) as { health?: unknown }
    return health === 'true'
  } catch {
    return false // it does not listen yet
  }
}
