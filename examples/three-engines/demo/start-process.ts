import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Started {
  go(): void
  /** Resolves when it has begun its slow part. */
  working(): Promise<void>
  /** Resolves when it has ended by itself. */
  ended(): Promise<void>
  stop(): Promise<void>
  kill(): Promise<void>
  /** Stops the process where it is, as a full disk or a moved machine does. */
  pause(): void
  resume(): void
}

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Starts a process; resolves once it is ready to go. */
export async function startProcess(
  environment: Readonly<Record<string, string>>,
): Promise<Started> {
  const child: ChildProcess = fork(main, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  // Whoever wants to know awaits it.
  exited.catch(() => undefined)
  const ready = await Promise.race([
    once(child, 'message').then(() => true),
    exited.then(() => false),
  ])
  if (!ready) throw new Error('a process ended before it was ready')
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await exited
  }
  return {
    go: () => void child.send('go'),
    working: async () => void (await once(child, 'message')),
    ended: async () => {
      const [status] = await exited
      if (status !== 0) throw new Error(`a process ended with status ${status}`)
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}
