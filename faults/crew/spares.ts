import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { FromMember } from './messages.ts'

/** Processes that have started and wait for work: to start one takes longer than many an episode's fault. */
export interface Spares extends AsyncDisposable {
  /** One that is ready; another is started in its place. */
  take(): Promise<ChildProcess>
  /** One that has stopped its work and can be given other. */
  giveBack(child: ChildProcess): void
}

export function openSpares(ahead: number = 1): Spares {
  const idle: Promise<ChildProcess>[] = []
  const fill = (): void => {
    while (idle.length < ahead) {
      const starting = startMember()
      // Whoever takes it is told if it did not start; until then nobody need be.
      starting.catch(() => undefined)
      idle.push(starting)
    }
  }
  fill()
  return {
    async take() {
      const child = await (idle.shift() ?? startMember())
      fill()
      return isAlive(child) ? child : await this.take()
    },
    giveBack: (child) => void idle.unshift(Promise.resolve(child)),
    async [Symbol.asyncDispose]() {
      const started = await Promise.allSettled(idle)
      await Promise.all(
        started.map(async (each) => each.status === 'fulfilled' && (await kill(each.value))),
      )
    },
  }
}

export async function kill(child: ChildProcess): Promise<void> {
  if (!isAlive(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

export function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

async function startMember(): Promise<ChildProcess> {
  const child = fork(new URL('./member.ts', import.meta.url), {
    // Ctrl-C is for the harness: it ends the run, and its channel ends them.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // What the library warns of under faults is in the histories.
    execArgv: ['--no-warnings'],
  })
  await new Promise<void>((resolve, reject) => {
    child.once('message', (message: FromMember) => {
      if (message.kind === 'ready') resolve()
      else reject(new Error(`a process of the crew began with ${message.kind}`))
    })
    child.once('exit', (code) => reject(new Error(`a process of the crew ended with ${code}`)))
  })
  child.removeAllListeners('exit')
  return child
}
