/** One application process: works on keys of all primaries, one of which fails now and then. */
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import type { SessionDriver } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { shardedDriver } from '../../packages/holdfast/src/shards/index.ts'
import { type AppLine, seatsOfKey } from './shards-model.ts'
import {
  type OutageCounts,
  type OutageOrder,
  type OutageSetup,
  queue,
} from './shards-outage-model.ts'
import { any, insistOn } from './shards-callers.ts'

interface Job {
  readonly id: string
  readonly key: string
}

type Drivers = Readonly<Record<string, SessionDriver<pg.PoolClient>>>

/** At work on each sort of keys. */
const workers = { moved: 2, failing: 1, others: 4 }
/** Between two jobs of this process. */
const jobEveryMs = 25

process.once('message', (setup: OutageSetup) => void run(setup))
process.on('disconnect', () => process.exit(0))

async function run(setup: OutageSetup): Promise<void> {
  const { urls, file, moved, failing, others, thinkMs, inTurn } = setup
  const drivers: Drivers = Object.fromEntries(
    Object.entries(urls).map(([name, url]) => {
      const pool = new pg.Pool({ connectionString: url, max: 8 })
      pool.on('error', () => undefined)
      return [name, fromPg(pool)]
    }),
  )
  const hf = createHoldfast(shardedDriver(drivers))
  const uses = hf.quota({ name: 'uses', limit: 1_000_000_000, per: 'lifetime' })
  const seats = hf.quota({ name: 'seats', limit: seatsOfKey, per: 'lifetime' })
  const jobs = hf.work<Job>({ queue, lease: '5 s' })
  const done = { operations: 0, jobs: 0 }
  let noMoreJobs = false
  const write = (line: AppLine): void => {
    appendFileSync(file, `${JSON.stringify(line)}\n`)
  }
  const acts = {
    use: async (key: string, id: string) => (await uses.consume(key, 1, { operationId: id })).ok,
    seat: async (key: string, id: string) => (await seats.consume(key, 1, { operationId: id })).ok,
  }
  const told = async (kind: 'use' | 'seat', key: string): Promise<void> => {
    const id = randomUUID()
    write({ kind, key, id, outcome: 'begun' })
    const ok = await insistOn(() => acts[kind](key, id))
    write({ kind, key, id, outcome: ok ? 'ok' : 'no' })
  }
  const forEver = async (work: () => Promise<void>, pauseMs: number): Promise<void> => {
    for (;;) {
      await work()
      await after(pauseMs)
    }
  }
  const many = (count: number, work: () => Promise<void>): void => {
    for (let at = 0; at < count; at += 1) void forEver(work, thinkMs)
  }
  many(workers.moved, () => told(any(['use', 'use', 'seat']), any(moved)))
  many(
    workers.failing,
    async () => void (await insistOn(() => acts.use(any(failing), randomUUID()))),
  )
  many(workers.others, async () => {
    await told('use', any(others))
    done.operations += 1
  })
  const enqueue = async (key: string, id: string): Promise<void> => {
    await insistOn(() => jobs.enqueue({ payload: { id, key }, scope: key, uniqueKey: id }))
  }
  void forEver(async () => {
    if (noMoreJobs) return
    const [key, id] = [any(others), randomUUID()]
    write({ kind: 'once', key, id, outcome: 'begun' })
    await enqueue(key, id)
    write({ kind: 'once', key, id, outcome: 'ok' })
  }, jobEveryMs)
  void forEver(() => enqueue(any(failing), randomUUID()), jobEveryMs * 4)
  const isOther = new Set(others)
  const handle = async (tx: pg.PoolClient, { id, key }: Job): Promise<void> => {
    await tx.query('INSERT INTO effect VALUES ($1, $2, $3)', [bucketOf(key), id, randomUUID()])
  }
  const counted = ({ key }: Job): void => {
    if (isOther.has(key)) done.jobs += 1
  }
  if (inTurn) void workInTurn(drivers, handle, counted)
  else {
    hf.ledger.startSweeper({ every: '1 s' })
    await jobs.run({
      concurrency: 8,
      poll: { max: '200 ms' },
      transactionHandler: async (tx, { payload }) => {
        await handle(tx, payload)
        counted(payload)
      },
    })
  }
  process.on('message', (order: OutageOrder) => {
    noMoreJobs = order.noMoreJobs ?? noMoreJobs
    process.send?.({ ...done } satisfies OutageCounts)
  })
  process.send?.('ready')
}

/** As one would write it: from one primary after the other, whichever answers or not. */
async function workInTurn(
  drivers: Drivers,
  handle: (tx: pg.PoolClient, job: Job) => Promise<void>,
  counted: (job: Job) => void,
): Promise<void> {
  const parts = Object.values(drivers).map((driver) => createHoldfast(driver))
  for (;;) {
    for (const hf of parts) {
      const jobs = hf.work<Job>({ queue, lease: '5 s' })
      try {
        for (const claim of await jobs.claim(8)) {
          await hf.transaction(async (tx) => {
            await handle(tx, claim.row.payload)
            await jobs.complete(tx, claim)
          })
          counted(claim.row.payload)
        }
      } catch {
        // The next round may go better.
      }
    }
    await after(10)
  }
}
