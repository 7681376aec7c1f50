/** One instance of an application with a wrong clock and late timers; see schedule.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import type { ScheduleOptions } from '../../packages/holdfast/src/schedule/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { everyMs, type InstanceSetup } from './schedule-setup.ts'

const realTimeout = globalThis.setTimeout
const RealDate = globalThis.Date
const handlerMs = 5
const latestMs = 500

process.on('message', (setup: InstanceSetup & { readonly index: number }) => void run(setup))
process.on('disconnect', () => process.exit(0))

async function run({ url, control, skewsMs, index }: InstanceSetup & { index: number }) {
  disturb(skewsMs[index] as number)
  const pool = await openPool(url, 6)
  // A database that is stopped while we are killed is not our concern.
  process.on('unhandledRejection', (error) => {
    throw error
  })
  if (control) return tryLockForEver(await pool.connect(), index)
  const hf = createHoldfast(fromPg(pool))
  const work = async (
    client: Pick<PoolClient, 'query'>,
    name: string,
    at: Date,
    attempt: number,
  ): Promise<void> => {
    await pause(handlerMs)
    await client.query('INSERT INTO effect VALUES ($1, $2, $3, $4)', [name, at, index, attempt])
  }
  const common = { every: everyMs, missed: { all: 10_000 }, holder: `instance ${index}` } as const
  const schedules: ScheduleOptions<PoolClient>[] = [
    {
      ...common,
      name: 'transactional',
      guarantee: 'transactional',
      overlap: 'wait',
      handler: async (tx, { at, attempt }) => await work(tx, 'transactional', at, attempt),
    },
    {
      ...common,
      name: 'at-least-once',
      guarantee: 'at-least-once',
      overlap: 'allow',
      lease: '2 s',
      attempts: 100,
      handler: async ({ at, attempt }) => await work(pool, 'at-least-once', at, attempt),
    },
    {
      ...common,
      name: 'at-most-once',
      guarantee: 'at-most-once',
      overlap: 'allow',
      lease: '2 s',
      handler: async ({ at, attempt }) => await work(pool, 'at-most-once', at, attempt),
    },
  ]
  for (const options of schedules) hf.schedule(options).start()
}

/** The clock is wrong by so much, and every timer is late; those of `node:timers/promises` are not. */
function disturb(skewMs: number): void {
  class SkewedDate extends RealDate {
    constructor(...args: []) {
      if (args.length === 0) super(RealDate.now() + skewMs)
      else super(...args)
    }
    static override now(): number {
      return RealDate.now() + skewMs
    }
  }
  globalThis.Date = SkewedDate as DateConstructor
  const late = (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    realTimeout(callback, ms + Math.random() * latestMs, ...args)
  globalThis.setTimeout = Object.assign(late, realTimeout) as unknown as typeof setTimeout
}

/** The pattern of the articles: at each tick of one's own clock, try the lock, and run if it is free. */
async function tryLockForEver(client: PoolClient, index: number): Promise<void> {
  for (;;) {
    const tickMs = (Math.floor(Date.now() / everyMs) + 1) * everyMs
    await pause(tickMs - Date.now() + Math.random() * latestMs)
    await client.query('BEGIN')
    const { rows } = await client.query<{ got: boolean }>(
      'SELECT pg_try_advisory_xact_lock(8739201, 1) AS got',
    )
    if (rows[0]?.got === true) {
      await pause(handlerMs)
      await client.query(
        "INSERT INTO effect VALUES ('try_lock', to_timestamp($1::float8 / 1000), $2, 1)",
        [tickMs, index],
      )
    }
    await client.query('COMMIT')
  }
}
