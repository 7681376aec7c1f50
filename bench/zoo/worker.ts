/** Explores what it is sent, one task at a time, in a process of its own; see ../stress/explorer.ts. */
import { exploreTask, type Said } from './explore-task.ts'
import { startLateServer } from './late-server.ts'
import type { Task } from './variants.ts'

export interface WorkerOrder {
  readonly url: string
  readonly elsewhere: string
  readonly task: Task
}

/** How the task ended; undefined if explore() itself threw, which `message` tells. */
export interface WorkerReport {
  readonly said: Said | undefined
  readonly message: string
}

const { origin: here } = await startLateServer()
process.on('message', ({ url, elsewhere, task }: WorkerOrder) => {
  void (async () => {
    const report = await exploreTask(url, task, { here, elsewhere }).then(
      (said): WorkerReport => ({ said, message: said.message }),
      (error: Error): WorkerReport => ({ said: undefined, message: error.message }),
    )
    process.send?.(report)
  })()
})
process.send?.('ready')
