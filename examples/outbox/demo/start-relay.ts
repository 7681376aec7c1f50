import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Relay {
  /** Resolves when it has begun to deliver a message. */
  working(): Promise<void>
  stop(): Promise<void>
  kill(): Promise<void>
  /** Stops the process where it is, as a debugger, a full disk or a moved machine does. */
  pause(): void
  resume(): void
}

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Starts a process that delivers; resolves once it is ready. */
export async function startRelay(environment: Readonly<Record<string, string>>): Promise<Relay> {
  const child: ChildProcess = fork(main, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  await once(child, 'message')
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  return {
    working: async () => void (await once(child, 'message')),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}
