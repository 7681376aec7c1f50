import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Service {
  readonly url: string
  stop(): Promise<void>
  /** As the platform does when it has no more use for a process, or memory runs out. */
  kill(): Promise<void>
}

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Starts the service as a process of its own; resolves once it listens. */
export async function startService(
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const child = fork(main, {
    env: { ...process.env, DATABASE_URL: databaseUrl, PORT: '0', ...settings },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the service ended with status ${String(code)}`)
  })
  // Also rejects when the service is stopped on purpose, and then nobody is listening.
  ended.catch(() => undefined)
  const [{ port }] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }]
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}
