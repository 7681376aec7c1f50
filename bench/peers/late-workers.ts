import { randomUUID } from 'node:crypto'
import { sendSignal } from '@holdfast/testkit'
import { startJobProcess } from './job-crew.ts'
import {
  type JobPlaces,
  type JobQueueName,
  jobQueues,
  type JobTerms,
  resultsIn,
} from './job-queues.ts'

/** What became of one job, of which a second worker took care. */
export interface LateJob {
  /** How often its result was written. */
  readonly results: number
  /** From the signal until the second worker began with it. */
  readonly nextInMs: number
}

/** A worker gets a signal between taking a job and writing its result; after SIGSTOP it goes on once the other one has written. */
export async function lateJob(
  places: JobPlaces,
  name: JobQueueName,
  lockMs: number,
  signal: 'SIGSTOP' | 'SIGKILL',
): Promise<LateJob> {
  const terms: JobTerms = { queue: randomUUID(), connections: 4, concurrency: 1, lockMs }
  await using queue = await jobQueues[name](places, terms)
  await using late = await startJobProcess({ name, places, terms, stands: true })
  await queue.add(1)
  await late.until('began', 1)
  await using other = await startJobProcess({ name, places, terms, stands: false })
  const signalled = performance.timeOrigin + performance.now()
  const pid = late.child.pid as number
  sendSignal(pid, signal)
  try {
    await other.until('ended', 1)
  } finally {
    if (signal === 'SIGSTOP') sendSignal(pid, 'SIGCONT')
  }
  if (signal === 'SIGSTOP') {
    late.child.send('go on')
    await late.until('ended', 1)
    await late.stop()
  }
  await other.stop()
  return {
    results: await resultsIn(places.url),
    nextInMs: (other.began[0] ?? Number.NaN) - signalled,
  }
}

/** How many jobs began when there were more than the limit allows. */
export interface LimitedRun {
  /** Most in any span of nine tenths of the window, so that a handler may begin a little late, above the limit. */
  readonly over: number
  readonly began: number
  /** From the first to the last. */
  readonly seconds: number
}

/** Two processes on the jobs of one queue with a limit. With `late` most jobs come when the window is nearly over. */
export async function limitedRun(
  places: JobPlaces,
  name: JobQueueName,
  given: { readonly jobs: number; readonly callers: number; readonly late: boolean },
  limit: { readonly most: number; readonly perMs: number },
): Promise<LimitedRun> {
  const { jobs, callers, late } = given
  const terms: JobTerms = {
    queue: randomUUID(),
    connections: 8,
    concurrency: callers,
    lockMs: 30_000,
    limit,
  }
  await using queue = await jobQueues[name](places, terms)
  if (!late) await queue.add(jobs)
  const task = { name, places, terms, stands: false }
  await using one = await startJobProcess(task)
  await using other = await startJobProcess(task)
  if (late) {
    await queue.add(1)
    await Promise.race([one.until('began', 1), other.until('began', 1)])
    const first = one.began[0] ?? other.began[0] ?? 0
    const waitMs = first + limit.perMs * 0.8 - (performance.timeOrigin + performance.now())
    await new Promise((resolve) => {
      setTimeout(resolve, waitMs)
    })
    await queue.add(jobs - 1)
  }
  for (;;) {
    const missing = jobs - one.began.length - other.began.length
    if (missing <= 0) break
    await Promise.race([
      one.until('began', one.began.length + 1),
      other.until('began', other.began.length + 1),
    ])
  }
  await Promise.all([one.stop(), other.stop()])
  await resultsIn(places.url)
  const began = [...one.began, ...other.began].toSorted((a, b) => a - b)
  return {
    over: Math.max(0, mostWithin(began, limit.perMs * 0.9) - limit.most),
    began: began.length,
    seconds: ((began.at(-1) ?? 0) - (began[0] ?? 0)) / 1_000,
  }
}

function mostWithin(sorted: readonly number[], ms: number): number {
  let [most, from] = [0, 0]
  for (const [at, moment] of sorted.entries()) {
    while ((sorted[from] ?? 0) <= moment - ms) from += 1
    most = Math.max(most, at - from + 1)
  }
  return most
}
