import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { Redis } from 'ioredis'

/** A Redis that keeps everything in memory, for one run. */
export interface RedisServer extends AsyncDisposable {
  readonly port: number
  readonly pid: number
}

const host = '127.0.0.1'

/** Starts a `redis-server` of the machine, if there is one. It writes nothing to disk and ends with this process. */
export async function startRedis(): Promise<RedisServer | undefined> {
  const port = await freePort()
  const settings = ['--port', String(port), '--bind', host, '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', settings, { stdio: 'ignore' })
  const failed = once(server, 'error').then(() => false)
  const kill = (): void => void server.kill('SIGTERM')
  process.once('exit', kill)
  if (!(await Promise.race([answers(port), failed]))) return undefined
  const { pid } = server
  if (pid === undefined) return undefined
  return {
    port,
    pid,
    async [Symbol.asyncDispose]() {
      process.off('exit', kill)
      const gone = once(server, 'exit')
      kill()
      await gone
    },
  }
}

/** True as soon as it does; a client of Redis connects again until then. */
async function answers(port: number): Promise<boolean> {
  const redis = new Redis({ host, port, retryStrategy: () => 50, maxRetriesPerRequest: 200 })
  redis.on('error', () => undefined)
  try {
    return (await redis.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    redis.disconnect()
  }
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, host)
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  listener.close()
  return port
}
