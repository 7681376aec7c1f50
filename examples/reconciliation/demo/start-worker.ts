import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Worker {
  stop(): Promise<void>
  /** As the kernel does when memory runs out, and a platform when a deploy takes too long. */
  kill(): Promise<void>
}

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const lateTimers = new URL('./late-timers.ts', import.meta.url).href

/** Starts a process; resolves once it is ready. It tells `onWorking` about each night it begins. */
export async function startWorker(
  environment: Readonly<Record<string, string>>,
  onWorking: (night: string) => void,
): Promise<Worker> {
  const child: ChildProcess = fork(main, {
    env: { ...process.env, ...environment },
    execArgv: [...process.execArgv, '--import', lateTimers],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the process ended with status ${String(code)}`)
  })
  // Also rejects when it is stopped on purpose, and then nobody is listening.
  ended.catch(() => undefined)
  await Promise.race([once(child, 'message'), ended])
  child.on('message', ({ working }: { working?: string }) => {
    if (working !== undefined) onWorking(working)
  })
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }
  return { stop: () => end('SIGTERM'), kill: () => end('SIGKILL') }
}
