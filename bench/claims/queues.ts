import { withClient } from '@holdfast/testkit'
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { PgBoss } from 'pg-boss'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { createTasks, refill, tasksOptions } from './claims-ground.ts'

/** How many handlers may run at once, and how many connections there are, for everybody. */
export const concurrency = 100
export const connections = 8

/** Jobs that do nothing, and whoever works on them. */
export interface Queue {
  /** Puts so many there; not measured. */
  fill(url: string, jobs: number): Promise<void>
  /** Works on them, with a handler that only counts, until it is disposed of. */
  burn(url: string, handled: () => void): Promise<AsyncDisposable>
}

const quiet = new Logger(() => () => undefined)

export const queues: Readonly<Record<string, Queue>> = {
  'holdfast, own table': {
    async fill(url, jobs) {
      await createTasks(url, 'own_tasks')
      await refill(url, 'own_tasks', jobs)
    },
    async burn(url, handled) {
      const pool = await openPool(url, connections)
      const tasks = createHoldfast(fromPg(pool)).claims(tasksOptions('own_tasks'))
      const worker = await tasks.run({ concurrency, handler: async () => handled() })
      return disposing(async () => {
        await worker.stop()
        await pool.end()
      })
    },
  },
  'holdfast, work': {
    async fill(url, jobs) {
      const pool = await openPool(url, 1)
      await migrate(fromPg(pool))
      const work = createHoldfast(fromPg(pool)).work({ queue: 'bench' })
      for (let at = 0; at < jobs; at += 1_000) {
        await work.enqueue(
          Array.from({ length: Math.min(1_000, jobs - at) }, () => ({ payload: {} })),
        )
      }
      await pool.end()
      await withClient(url, async (client) => await client.query('VACUUM ANALYZE holdfast.work'))
    },
    async burn(url, handled) {
      const pool = await openPool(url, connections)
      const work = createHoldfast(fromPg(pool)).work({ queue: 'bench' })
      const worker = await work.run({ concurrency, handler: async () => handled() })
      return disposing(async () => {
        await worker.stop()
        await pool.end()
      })
    },
  },
  'pg-boss': {
    async fill(url, jobs) {
      const boss = await startBoss(url)
      await boss.createQueue('bench')
      for (let at = 0; at < jobs; at += 1_000) {
        await boss.insert(
          'bench',
          Array.from({ length: Math.min(1_000, jobs - at) }, () => ({ data: {} })),
        )
      }
      await boss.stop({ graceful: false })
      await withClient(url, async (client) => await client.query('VACUUM ANALYZE'))
    },
    async burn(url, handled) {
      const boss = await startBoss(url)
      // Their way to many at once: batches that are completed together, and more as long as they are full.
      await boss.work(
        'bench',
        { batchSize: concurrency / 2, localConcurrency: 2, burstWhenBatchFull: true },
        async (jobs) => {
          for (const _job of jobs) handled()
        },
      )
      return disposing(async () => await boss.stop({ graceful: false }))
    },
  },
  'graphile-worker': {
    async fill(url, jobs) {
      const utils = await makeWorkerUtils({ connectionString: url, logger: quiet })
      await utils.migrate()
      for (let at = 0; at < jobs; at += 1_000) {
        await utils.addJobs(
          Array.from({ length: Math.min(1_000, jobs - at) }, () => ({
            identifier: 'bench',
            payload: {},
          })),
        )
      }
      await utils.release()
      await withClient(url, async (client) => await client.query('VACUUM ANALYZE'))
    },
    burn: async (url, handled) => await graphile(url, handled, {}),
  },
  'graphile-worker, local queue': {
    fill: async (url, jobs) => await (queues['graphile-worker'] as Queue).fill(url, jobs),
    burn: async (url, handled) =>
      await graphile(url, handled, {
        localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      }),
  },
}

async function graphile(
  url: string,
  handled: () => void,
  worker: object,
): Promise<AsyncDisposable> {
  const runner = await run({
    connectionString: url,
    concurrency,
    maxPoolSize: connections,
    noHandleSignals: true,
    logger: quiet,
    taskList: {
      bench: async () => {
        handled()
      },
    },
    preset: { worker },
  })
  return disposing(async () => await runner.stop())
}

async function startBoss(url: string): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString: url,
    max: connections,
    supervise: false,
    schedule: false,
  })
  boss.on('error', () => undefined)
  await boss.start()
  return boss
}

function disposing(end: () => Promise<void>): AsyncDisposable {
  return { [Symbol.asyncDispose]: end }
}
