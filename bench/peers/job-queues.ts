import { setTimeout as pause } from 'node:timers/promises'
import { withClient } from '@holdfast/testkit'
import { Queue, Worker } from 'bullmq'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { openPool } from '../harness/open-pool.ts'

/** Where jobs and what becomes of them are. */
export interface JobPlaces {
  readonly url: string
  readonly redisPort: number
}

export interface JobTerms {
  /** Name of the queue. */
  readonly queue: string
  readonly connections: number
  /** Handlers at a time in a process. */
  readonly concurrency: number
  /** How long a job stays with a worker that is not heard of. */
  readonly lockMs: number
  /** At most so many jobs begin in so long, over all processes. */
  readonly limit?: { readonly most: number; readonly perMs: number }
}

/** Of one job: writes its result into PostgreSQL. */
type Write = () => Promise<unknown>

export interface JobQueue extends AsyncDisposable {
  add(jobs: number): Promise<void>
  /** Works until it is disposed of, and then ends what has begun. */
  work(handler: (write: Write) => Promise<unknown>): Promise<AsyncDisposable>
}

type OpenQueue = (places: JobPlaces, terms: JobTerms) => Promise<JobQueue>

/** How often those who look for jobs of the dead do so. */
const lookEveryMs = 1_000

const result = async (client: Pick<Pool | PoolClient, 'query'>, job: string): Promise<void> =>
  void (await client.query('INSERT INTO result (job) VALUES ($1)', [job]))

interface OurWay {
  /** The result is written in the transaction that completes the job. */
  readonly inTransaction?: true
  /** The limit is a rate limit that each handler asks before it begins, and not one of the queue. */
  readonly byRateLimit?: true
  readonly notify?: true
}

async function ours(
  { url }: JobPlaces,
  { queue, connections, concurrency, lockMs, limit }: JobTerms,
  { inTransaction, byRateLimit, notify }: OurWay,
): Promise<JobQueue> {
  // What docs/claims.md says of handlers that keep a transaction open.
  const idle = `options=-c%20idle_in_transaction_session_timeout%3D${lockMs}`
  const pool = await openPool(`${url}${url.includes('?') ? '&' : '?'}${idle}`, connections)
  const hf = createHoldfast(fromPg(pool))
  const jobs = hf.work<object>({
    queue,
    lease: lockMs,
    notify: notify ?? false,
    ...(limit === undefined || byRateLimit
      ? {}
      : { perScope: { rate: { most: limit.most, per: limit.perMs } } }),
  })
  const calls =
    limit && hf.rateLimit({ name: queue, limit: limit.most, rate: limit.perMs, burst: 1 })
  const begin = async (): Promise<void> => {
    if (!byRateLimit || calls === undefined) return
    for (;;) {
      const verdict = await calls.consume('all')
      if (verdict.ok) return
      await pause(Math.max(5, (verdict.retryAt?.getTime() ?? 0) - Date.now()))
    }
  }
  return {
    async add(count) {
      for (let at = 0; at < count; at += 1_000)
        await jobs.enqueue(
          Array.from({ length: Math.min(1_000, count - at) }, () => ({ payload: {} })),
        )
    },
    async work(handler) {
      const pace = { concurrency, recoverEvery: lookEveryMs }
      const worker = await jobs.run(
        inTransaction
          ? {
              ...pace,
              transactionHandler: async (tx, { id }) => await handler(() => result(tx, id)),
            }
          : {
              ...pace,
              handler: async ({ id }) => {
                await begin()
                await handler(() => result(pool, id))
              },
            },
      )
      return { [Symbol.asyncDispose]: async () => void (await worker.stop()) }
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

/** Each on the same jobs. */
export const jobQueues = {
  'holdfast, work': (places, terms) => ours(places, terms, {}),
  'holdfast, work with notify': (places, terms) => ours(places, terms, { notify: true }),
  'holdfast, work in its transaction': (places, terms) =>
    ours(places, terms, { inTransaction: true }),
  'holdfast, rate limit asked by the handler': (places, terms) =>
    ours(places, terms, { byRateLimit: true }),
  bullmq: async ({ url, redisPort }, { queue, connections, concurrency, lockMs, limit }) => {
    const pool = await openPool(url, connections)
    const connection = { host: '127.0.0.1', port: redisPort }
    // As our queue has it: jobs that are done are not kept.
    const jobs = new Queue(queue, { connection, defaultJobOptions: { removeOnComplete: true } })
    return {
      async add(count) {
        for (let at = 0; at < count; at += 1_000) {
          const some = Array.from({ length: Math.min(1_000, count - at) }, () => ({
            name: 'bench',
            data: {},
          }))
          await jobs.addBulk(some)
        }
      },
      async work(handler) {
        const worker = new Worker(
          queue,
          async ({ id = '' }) => void (await handler(() => result(pool, id))),
          {
            connection: { ...connection, maxRetriesPerRequest: null },
            concurrency,
            lockDuration: lockMs,
            stalledInterval: lookEveryMs,
            ...(limit === undefined ? {} : { limiter: { max: limit.most, duration: limit.perMs } }),
          },
        )
        // That a job was lost is an error of the worker.
        worker.on('error', () => undefined)
        await worker.waitUntilReady()
        return { [Symbol.asyncDispose]: async () => await worker.close() }
      },
      async [Symbol.asyncDispose]() {
        await jobs.close()
        await pool.end()
      },
    }
  },
} as const satisfies Record<string, OpenQueue>

export type JobQueueName = keyof typeof jobQueues

export async function installResults(url: string): Promise<void> {
  const pool = await openPool(url, 1)
  await migrate(fromPg(pool))
  await pool.end()
  await withClient(url, async (client) => {
    await client.query('CREATE TABLE result (job text NOT NULL)')
  })
}

export async function resultsIn(url: string): Promise<number> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM result')
    await client.query('TRUNCATE result')
    return rows[0]?.n ?? 0
  })
}
