/** One application process: works on keys of buckets that move, and on others, until it is killed. */
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import type { SessionDriver } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { shardedDriver } from '../../packages/holdfast/src/shards/index.ts'
import { type AppLine, type AppOrder, type AppSetup, seatsOfKey } from './shards-model.ts'
import { any, insistOn } from './shards-callers.ts'

/** At work on keys that move, and on others. */
const [workers, otherWorkers] = [3, 4]

process.once('message', (setup: AppSetup) => {
  void run(setup)
})
process.on('disconnect', () => process.exit(0))

async function run({ urls, file, moving, others, thinkMs: atFirst }: AppSetup): Promise<void> {
  let thinkMs = atFirst
  const drivers: Record<string, SessionDriver<pg.PoolClient>> = Object.fromEntries(
    Object.entries(urls).map(([name, url]) => {
      const pool = new pg.Pool({ connectionString: url, max: 6 })
      pool.on('error', () => undefined)
      return [name, fromPg(pool)]
    }),
  )
  const hf = createHoldfast(shardedDriver(drivers))
  const uses = hf.quota({ name: 'uses', limit: 1_000_000_000, per: 'lifetime' })
  const seats = hf.quota({ name: 'seats', limit: seatsOfKey, per: 'lifetime' })
  const write = (line: AppLine): void => {
    appendFileSync(file, `${JSON.stringify(line)}\n`)
  }
  const acts: Record<AppLine['kind'], (key: string, id: string) => Promise<boolean>> = {
    use: async (key, id) => (await uses.consume(key, 1, { operationId: id })).ok,
    seat: async (key, id) => (await seats.consume(key, 1, { operationId: id })).ok,
    async hold(key, id) {
      const held = await uses.hold(key, 2, { operationId: id, ttl: '1 h' })
      return held.ok && (await uses.settle(held.holdId ?? '', 1)).ok
    },
    async once(key, id) {
      const answer = await hf.once(
        id,
        async (tx) => {
          await tx.query('INSERT INTO effect VALUES ($1, $2, $3)', [
            bucketOf(key),
            id,
            randomUUID(),
          ])
          return id
        },
        { scope: key },
      )
      return answer.ok && answer.result === id
    },
  }
  const kinds = ['use', 'use', 'use', 'hold', 'once', 'seat'] as const
  const worker = async (): Promise<void> => {
    for (;;) {
      const key = any(moving)
      const kind = any(kinds)
      const id = randomUUID()
      write({ kind, key, id, outcome: 'begun' })
      // Whatever goes wrong is tried again under the same id, and now and then what went well, too.
      let ok = await insistOn(() => acts[kind](key, id))
      if (Math.random() < 0.2) ok = (await insistOn(() => acts[kind](key, id))) && ok
      write({ kind, key, id, outcome: ok ? 'ok' : 'no' })
      await after(thinkMs)
    }
  }
  let done = 0
  const otherWorker = async (): Promise<void> => {
    for (;;) {
      const key = any(others)
      await insistOn(() => acts.use(key, randomUUID()))
      done += 1
      await after(thinkMs)
    }
  }
  process.on('message', (order: AppOrder) => {
    thinkMs = order.thinkMs ?? thinkMs
    process.send?.(done)
  })
  for (let at = 0; at < workers; at += 1) void worker()
  for (let at = 0; at < otherWorkers; at += 1) void otherWorker()
  process.send?.('ready')
}
