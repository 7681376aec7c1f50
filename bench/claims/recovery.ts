import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { PostgresServer } from '@holdfast/testkit'
import { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import type { FactTable } from '../harness/bench-scenario.ts'

/** Adds one job and gives a worker that survives; its handler is called when the job comes back. */
type Survivor = (url: string) => Promise<{
  start(handled: () => void): Promise<unknown>
  end(): Promise<unknown>
}>

const survivors: Readonly<Record<'holdfast, work' | 'pg-boss', Survivor>> = {
  'holdfast, work': async (url) => {
    const pool = new Pool({ connectionString: url })
    await migrate(fromPg(pool))
    const work = createHoldfast(fromPg(pool)).work({ queue: 'bench', lease: '10 s' })
    await work.enqueue({ payload: {} })
    let worker: Awaited<ReturnType<typeof work.run>> | undefined
    return {
      start: async (handled) => {
        worker = await work.run({ recoverEvery: '1 s', handler: async () => handled() })
      },
      end: async () => {
        await worker?.stop()
        await pool.end()
      },
    }
  },
  'pg-boss': async (url) => {
    const boss = new PgBoss({
      connectionString: url,
      schedule: false,
      superviseIntervalSeconds: 1,
      monitorIntervalSeconds: 1,
    })
    boss.on('error', () => undefined)
    await boss.start()
    await boss.createQueue('bench', { heartbeatSeconds: 10, retryLimit: 3, retryDelay: 0 })
    await boss.send('bench', {})
    return {
      start: async (handled) =>
        await boss.work('bench', { pollingIntervalSeconds: 0.5 }, async () => handled()),
      end: async () => await boss.stop({ graceful: false }),
    }
  },
}

/** Seconds from the death of a worker by SIGKILL until another one has its job. */
export async function recoveryTimes(
  server: PostgresServer,
  progress: (text: string) => void,
): Promise<FactTable> {
  const rows: string[][] = []
  for (const [at, [name, survivor]] of Object.entries(survivors).entries()) {
    progress(`${name}: recovery`)
    const url = await server.createDatabase(`recovery_${at}`)
    const { start, end } = await survivor(url)
    const dying = fork(new URL('./dying-worker.ts', import.meta.url), [url, name])
    await once(dying, 'message')
    const { promise, resolve } = Promise.withResolvers<void>()
    await start(resolve)
    const gone = once(dying, 'exit')
    dying.kill('SIGKILL')
    await gone
    const died = performance.now()
    await promise
    rows.push([name, ((performance.now() - died) / 1_000).toFixed(1)])
    await end()
  }
  rows.push(['graphile-worker', 'not measured: 4 hours, by its documentation'])
  return {
    title:
      'Seconds from SIGKILL until another worker has the job; lease and heartbeat of 10 s, the least that pg-boss allows, a sweep every second:',
    columns: ['', 'seconds'],
    rows,
  }
}
