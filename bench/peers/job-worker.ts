/** Works on the jobs of a queue and says when each begins; stands before it writes if it is to. See late-workers.ts. */
import { once } from 'node:events'
import { type JobPlaces, type JobQueueName, jobQueues, type JobTerms } from './job-queues.ts'

export interface WorkerTask {
  readonly name: JobQueueName
  readonly places: JobPlaces
  readonly terms: JobTerms
  /** Until it is told to go on. */
  readonly stands: boolean
}

export type WorkerNews =
  | { readonly kind: 'ready' }
  /** By the clock of this machine, which all processes here share. */
  | { readonly kind: 'began'; readonly at: number }
  | { readonly kind: 'ended' }

const tell = (news: WorkerNews): void => void process.send?.(news)
const { name, places, terms, stands } = JSON.parse(process.argv[2] ?? '{}') as WorkerTask
process.once('disconnect', () => process.exit(0))
const queue = await jobQueues[name](places, terms)
const worker = await queue.work(async (write) => {
  tell({ kind: 'began', at: performance.timeOrigin + performance.now() })
  if (stands) await once(process, 'message')
  try {
    await write()
  } finally {
    tell({ kind: 'ended' })
  }
})
process.on('message', (message) => {
  if (message !== 'stop') return
  const stop = async (): Promise<void> => {
    await worker[Symbol.asyncDispose]()
    await queue[Symbol.asyncDispose]()
    process.exit(0)
  }
  stop().catch(() => process.exit(1))
})
tell({ kind: 'ready' })
