import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { startPostgres } from '@holdfast/testkit'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Effort, type Side } from '../harness/compare.ts'
import { type Meter, meterOf } from '../harness/meter.ts'
import { quantile } from '../harness/summary.ts'
import {
  installResults,
  type JobPlaces,
  type JobQueueName,
  jobQueues,
  type JobTerms,
} from '../peers/job-queues.ts'
import { lateJob, limitedRun } from '../peers/late-workers.ts'
import { startRedis } from '../peers/start-redis.ts'

const connections = 16
const callersOfProcess = 64

interface Plan {
  readonly limit: { readonly most: number; readonly perMs: number }
  readonly lockMs: number
  readonly rounds: number
  readonly jobs: number
  readonly lateRounds: number
  readonly effort: Effort
  /** Handlers at a time, and jobs of a slice. */
  readonly crowds: readonly (readonly [handlers: number, jobs: number])[]
  readonly latencies: number
}

const full: Plan = {
  limit: { most: 50, perMs: 2_000 },
  lockMs: 2_000,
  rounds: 3,
  jobs: 200,
  lateRounds: 5,
  effort: { rounds: 8, sliceMs: 0, warmUps: 1, limitMs: 60_000 },
  crowds: [
    [64, 5_000],
    [1, 500],
    [512, 5_000],
  ],
  latencies: 60,
}
const quick: Plan = {
  limit: { most: 50, perMs: 1_000 },
  lockMs: 1_000,
  rounds: 1,
  jobs: 100,
  lateRounds: 1,
  effort: { rounds: 4, sliceMs: 0, warmUps: 1, limitMs: 4_000 },
  crowds: [[64, 1_000]],
  latencies: 10,
}

const limited: readonly JobQueueName[] = [
  'holdfast, work',
  'holdfast, rate limit asked by the handler',
  'bullmq',
]
const late: readonly JobQueueName[] = [
  'holdfast, work in its transaction',
  'holdfast, work',
  'bullmq',
]
const alone: readonly JobQueueName[] = ['holdfast, work', 'holdfast, work with notify', 'bullmq']

export const peerJobs: BenchScenario = {
  about:
    'jobs with a limit, jobs of workers that stand still, and what a job costs: our queue and bullmq',
  method:
    'Servers and clients on one machine, fsync on, one Redis without persistence, bullmq 6. Limit: two processes of ' +
    `${callersOfProcess} handlers; "over" is the most that began in any nine tenths of the window, above the limit; once with all jobs there ` +
    'from the beginning, once with one job and all others when four fifths of its window are over. bullmq: the limiter of the worker. ours: the rate of the queue, by scope; or a rate limit, burst 1, that the handler asks. ' +
    `Standing still: a worker is stopped (SIGSTOP) before it writes its result into PostgreSQL, and goes on when another one has done the job; killed: SIGKILL at the same place. ` +
    'Who looks for lost jobs does so every second. Cost: jobs that do nothing, all there when one worker starts, in turn; starting and stopping is part of it. Idle: one job at a time, from adding it to its handler.',
  async run({ quick: short, progress }) {
    const plan = short ? quick : full
    progress('starting PostgreSQL and Redis')
    await using server = await startPostgres({ settings: { fsync: 'on' } })
    await using redis = await startRedis()
    if (redis === undefined)
      return { comparisons: [], method: 'There is no redis-server here: nothing was measured.' }
    const places: JobPlaces = { url: await server.createDatabase('jobs'), redisPort: redis.port }
    await installResults(places.url)
    const facts = [
      await limits(places, plan, progress),
      await lateWorkers(places, plan, progress),
      await idleLatencies(places, plan, progress),
    ]
    const meter = meterOf({ postmaster: server.pid, redis: redis.pid })
    return { comparisons: await costs(places, plan, meter, progress), facts }
  },
}

async function limits(
  places: JobPlaces,
  { rounds, jobs, limit }: Plan,
  progress: (text: string) => void,
): Promise<FactTable> {
  const rows: string[][] = []
  for (const name of limited) {
    const cells: string[] = []
    for (const isLate of [false, true]) {
      progress(`limit: ${name}${isLate ? ', jobs that come late in a window' : ''}`)
      const runs = []
      for (let round = 0; round < rounds; round += 1) {
        const given = { jobs, callers: callersOfProcess, late: isLate }
        runs.push(await limitedRun(places, name, given, limit))
      }
      cells.push(String(Math.max(...runs.map(({ over }) => over))))
      cells.push(String(Math.max(...runs.map(({ began }) => began - jobs))))
      if (!isLate)
        cells.push(
          quantile(
            runs.map(({ seconds }) => seconds),
            0.5,
          ).toFixed(1),
        )
    }
    rows.push([name, ...cells])
  }
  const best = ((jobs / limit.most - 1) * limit.perMs) / 1_000
  return {
    title: `${jobs} jobs, at most ${limit.most} in ${limit.perMs / 1_000} s, ${rounds} rounds, the worst of them; ${best} s is the least for whoever lets ${limit.most} begin at once:`,
    columns: [
      '',
      'all there: over',
      'begun twice',
      'seconds for all',
      'late in a window: over',
      'begun twice',
    ],
    rows,
  }
}

async function lateWorkers(
  places: JobPlaces,
  { lateRounds, lockMs }: Plan,
  progress: (text: string) => void,
): Promise<FactTable> {
  const rows: string[][] = []
  for (const name of late) {
    const cells: string[] = []
    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
      progress(`${signal}: ${name}`)
      const all = []
      for (let round = 0; round < lateRounds; round += 1)
        all.push(await lateJob(places, name, lockMs, signal))
      const times = all.map(({ nextInMs }) => nextInMs / 1_000)
      cells.push(
        `${all.reduce((sum, { results }) => sum + results, 0)} of ${lateRounds}`,
        lateRounds === 1
          ? Math.max(...times).toFixed(1)
          : `${Math.min(...times).toFixed(1)}–${Math.max(...times).toFixed(1)}`,
      )
    }
    rows.push([name, ...cells])
  }
  return {
    title: `Results of ${lateRounds} jobs whose worker stands still or is killed, and seconds until another one begins; locks and leases of ${lockMs / 1_000} s:`,
    columns: [
      '',
      'stands still: results written',
      'next in after, s',
      'SIGKILL: results written',
      'next in after, s',
    ],
    rows,
  }
}

async function idleLatencies(
  places: JobPlaces,
  { latencies }: Plan,
  progress: (text: string) => void,
): Promise<FactTable> {
  const rows: string[][] = []
  for (const name of alone) {
    progress(`idle: ${name}`)
    await using queue = await jobQueues[name](places, { ...terms(64), queue: randomUUID() })
    let began: (() => void) | undefined
    await using _worker = await queue.work(async () => began?.())
    const taken: number[] = []
    for (let job = 0; job < latencies; job += 1) {
      const { promise, resolve } = Promise.withResolvers<void>()
      began = resolve
      // At any moment between two looks of who looks again and again.
      await pause(Math.random() * 200)
      const addedAt = performance.now()
      await queue.add(1)
      await promise
      taken.push(performance.now() - addedAt)
    }
    rows.push([name, quantile(taken, 0.5).toFixed(1), quantile(taken, 0.99).toFixed(1)])
  }
  return {
    title: `Milliseconds from adding a job to its handler, on a queue that is empty otherwise, ${latencies} jobs:`,
    columns: ['', 'p50', 'p99'],
    rows,
  }
}

function terms(concurrency: number): Omit<JobTerms, 'queue'> {
  return { connections, concurrency, lockMs: 30_000 }
}

async function costs(
  places: JobPlaces,
  { effort, crowds }: Plan,
  meter: Meter | undefined,
  progress: (text: string) => void,
): Promise<Comparison[]> {
  const comparisons: Comparison[] = []
  for (const [handlers, jobs] of crowds) {
    const contest = {
      name: `work_vs_bullmq${handlers === 64 ? '' : `_${handlers}`}`,
      workers: handlers,
      measured: burning(places, 'holdfast, work', handlers, jobs),
      baseline: burning(places, 'bullmq', handlers, jobs),
    }
    comparisons.push(...(await compare(contest, effort, progress, meter)))
  }
  return comparisons
}

/** Jobs that do nothing, until all are done. */
function burning(places: JobPlaces, name: JobQueueName, handlers: number, jobs: number): Side {
  let queue: Awaited<ReturnType<(typeof jobQueues)[JobQueueName]>> | undefined
  return {
    label: `${name}, ${handlers} handlers, ${jobs} jobs`,
    async scene() {
      queue = await jobQueues[name](places, { ...terms(handlers), queue: randomUUID() })
      await queue.add(jobs)
      return async () => await queue?.[Symbol.asyncDispose]()
    },
    async measure() {
      if (queue === undefined) throw new Error('no scene was set')
      const { promise, resolve } = Promise.withResolvers<void>()
      const began = performance.now()
      let done = 0
      {
        await using _worker = await queue.work(async () => {
          done += 1
          if (done === jobs) resolve()
        })
        await promise
      }
      return done / ((performance.now() - began) / 1_000)
    },
  }
}
