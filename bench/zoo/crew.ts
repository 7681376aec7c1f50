/** Worker processes that explore tasks, each on a database of its own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Task } from './variants.ts'
import type { WorkerOrder, WorkerReport } from './worker.ts'

export interface Worker {
  explore(task: Task): Promise<WorkerReport>
  stop(): Promise<void>
}

/** Cuts a protection out of the explorer as it is loaded. */
export interface Weakening {
  readonly cutting: URL
  /** Names the protection to `cutting`. */
  readonly env: Readonly<Record<string, string>>
}

interface WorkerPlace {
  readonly url: string
  /** A server that answers late, in this process. */
  readonly elsewhere: string
  readonly weakened?: Weakening
}

/** Far beyond the budget of an exploration: by then it hangs. */
const longestMs = 240_000

/** One process; another one takes its place if an exploration hangs. */
export function createWorker({ url, elsewhere, weakened }: WorkerPlace): Worker {
  let child: Promise<ChildProcess> | undefined

  async function start(): Promise<ChildProcess> {
    const started = fork(new URL('./worker.ts', import.meta.url), {
      ...(weakened && { execArgv: ['--import', weakened.cutting.href] }),
      env: { ...process.env, ...weakened?.env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    await Promise.race([
      once(started, 'message'),
      once(started, 'exit').then(([code]) => {
        throw new Error(`a worker of the zoo ended with ${code} before it began`)
      }),
    ])
    return started
  }

  async function stop(): Promise<void> {
    const running = await child
    child = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }

  async function explore(task: Task): Promise<WorkerReport> {
    child ??= start()
    const running = await child
    const over = new AbortController()
    const { signal } = over
    running.send({ url, elsewhere, task } satisfies WorkerOrder)
    const timer = setTimeout(() => over.abort(), longestMs)
    try {
      return await Promise.race([
        once(running, 'message', { signal }).then(([report]) => report as WorkerReport),
        once(running, 'exit', { signal }).then(([code]) => {
          child = undefined
          return { said: undefined, message: `its process ended with ${code}` }
        }),
      ])
    } catch {
      await stop()
      return { said: undefined, message: `explore() had not ended after ${longestMs} ms` }
    } finally {
      clearTimeout(timer)
      // Takes the listener of the one that did not come away.
      over.abort()
    }
  }

  return { explore, stop }
}
