import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { WorkerNews, WorkerTask } from './job-worker.ts'

/** One process that works on jobs. */
export interface JobProcess extends AsyncDisposable {
  readonly child: ChildProcess
  /** When its jobs began. */
  readonly began: readonly number[]
  /** Resolves when so many have begun, or ended. */
  until(kind: 'began' | 'ended', jobs: number): Promise<void>
  /** It ends what it has begun, and then itself. */
  stop(): Promise<void>
}

export async function startJobProcess(task: WorkerTask): Promise<JobProcess> {
  const child = fork(new URL('./job-worker.ts', import.meta.url), [JSON.stringify(task)])
  const gone = once(child, 'exit')
  const began: number[] = []
  let ended = 0
  const waiting = new Set<() => void>()
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  child.on('message', (news: WorkerNews) => {
    if (news.kind === 'ready') resolve()
    if (news.kind === 'began') began.push(news.at)
    if (news.kind === 'ended') ended += 1
    for (const look of waiting) look()
  })
  const isReady = await Promise.race([ready.then(() => true), gone.then(() => false)])
  if (!isReady) throw new Error(`${task.name}: a worker ended before it was ready`)
  return {
    child,
    began,
    async until(kind, jobs) {
      const { promise, resolve: there } = Promise.withResolvers<void>()
      const look = (): void => {
        if ((kind === 'began' ? began.length : ended) >= jobs) there()
      }
      waiting.add(look)
      look()
      await promise
      waiting.delete(look)
    },
    async stop() {
      child.send('stop')
      await gone
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await gone
    },
  }
}
