/** One instance of an application with a wrong clock and late timers; see schedule.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ScheduleOptions } from '../../packages/holdfast/src/schedule/options.ts'
import { openScheduleStore, type ScheduleStore } from './schedule-store.ts'
import { everyMs, type InstanceSetup } from './schedule-setup.ts'

const realTimeout = globalThis.setTimeout
const RealDate = globalThis.Date
const handlerMs = 5
const latestMs = 500

process.on('message', (setup: InstanceSetup & { readonly index: number }) => void run(setup))
process.on('disconnect', () => process.exit(0))

async function run({ url, control, skewsMs, index }: InstanceSetup & { index: number }) {
  disturb(skewsMs[index] as number)
  const store = await openScheduleStore(url, 6)
  // A database that is stopped while we are killed is not our concern.
  process.on('unhandledRejection', (error) => {
    throw error
  })
  if (control) return tryLockForEver(store, index)
  const work = async (tx: unknown, name: string, at: Date): Promise<void> => {
    await pause(handlerMs)
    await store.effect(tx, name, at.getTime(), index)
  }
  const common = { every: everyMs, missed: { all: 10_000 }, holder: `instance ${index}` } as const
  const schedules: ScheduleOptions<unknown>[] = [
    {
      ...common,
      name: 'transactional',
      guarantee: 'transactional',
      overlap: 'wait',
      handler: async (tx, { at }) => await work(tx, 'transactional', at),
    },
    {
      ...common,
      name: 'at-least-once',
      guarantee: 'at-least-once',
      overlap: 'allow',
      lease: '2 s',
      attempts: 100,
      handler: async ({ at }) => await work(undefined, 'at-least-once', at),
    },
    {
      ...common,
      name: 'at-most-once',
      guarantee: 'at-most-once',
      overlap: 'allow',
      lease: '2 s',
      handler: async ({ at }) => await work(undefined, 'at-most-once', at),
    },
  ]
  for (const options of schedules) store.schedule(options).start()
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
async function tryLockForEver(store: ScheduleStore<unknown>, index: number): Promise<void> {
  for (;;) {
    const tickMs = (Math.floor(Date.now() / everyMs) + 1) * everyMs
    await pause(tickMs - Date.now() + Math.random() * latestMs)
    await store.ifFree(async (tx) => {
      await pause(handlerMs)
      await store.effect(tx, 'try_lock', tickMs, index)
    })
  }
}
