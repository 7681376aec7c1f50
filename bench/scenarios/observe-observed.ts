import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { createObserver, type Observer } from '../../packages/holdfast/src/observe/index.ts'
import type { FactTable } from '../harness/bench-scenario.ts'
import type { Contest } from '../harness/compare.ts'
import { openPool } from '../harness/open-pool.ts'
import { secondsOf } from '../harness/processor-seconds.ts'

/** Five hundred connections, most of them idle, as behind a few dozen processes. */
const working = 16
const holding = 40
const waiting = 8
const idle = 500 - working - holding - waiting
/** How often is looked. */
const everyMs = 1_000

/** A server that is observed once a second, and the same one that is not. */
export interface ObservedPlace extends AsyncDisposable {
  readonly contest: Contest
  /** What one look costs, taken while the work goes on. */
  facts(): Promise<FactTable>
}

export async function observedPlace(url: string): Promise<ObservedPlace> {
  const pools = {
    working: await openPool(url, working),
    busy: await openPool(url, holding + waiting),
    idle: await openPool(url, idle),
    observing: await openPool(url, 1),
  }
  const hf = createHoldfast(fromPg(pools.working))
  const observer = createObserver(fromPg(pools.observing))
  const letGo = await fill(pools.busy, observer)
  const operation = async (): Promise<void> => {
    await hf.guard(lockKey('bench', randomUUID()), async () => undefined)
  }
  const contest: Contest = {
    name: 'observed_vs_not',
    bar: 0.99,
    workers: working,
    measured: {
      label: 'guard, one random key; locks() once a second, 500 connections',
      operation,
      scene: async () => lookAgain(observer),
    },
    baseline: { label: 'guard, one random key; nobody looks, 500 connections', operation },
  }
  return {
    contest,
    async facts() {
      let on = true
      const work = Array.from({ length: working }, async () => {
        while (on) await operation()
      })
      const rows = await costOf(observer, pools.observing)
      on = false
      await Promise.all(work)
      return { title: 'One look at 500 connections', columns: ['what', 'ms'], rows }
    },
    async [Symbol.asyncDispose]() {
      await letGo()
      for (const pool of Object.values(pools)) await pool.end()
    },
  }
}

/** Sessions that hold a named lock each, idle in their transactions, and a short queue at one of them. */
async function fill(pool: Pool, observer: Observer): Promise<() => Promise<void>> {
  const hf = createHoldfast(fromPg(pool), {
    locks: { watch: false, queue: false, wait: 2 ** 31 - 1 },
  })
  const end = Promise.withResolvers<void>()
  const under = Array.from({ length: holding }, async (_, at) => {
    await hf.guard(lockKey('held', at), async () => await end.promise)
  })
  await waitUntil('all hold', async () => {
    const { sessions } = await observer.locks()
    return sessions.length === holding || undefined
  })
  for (let at = 0; at < waiting; at += 1) {
    under.push(hf.guard(lockKey('held', 0), async () => undefined))
  }
  await waitUntil('all wait', async () => {
    const { sessions } = await observer.locks()
    return sessions.length === holding + waiting || undefined
  })
  return async () => {
    end.resolve()
    await Promise.all(under)
  }
}

/** Looks at once and then every second, until it is told to stop. */
function lookAgain(observer: Observer): () => Promise<void> {
  const stop = new AbortController()
  const looking = (async () => {
    while (!stop.signal.aborted) {
      await observer.locks()
      await pause(everyMs, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  })()
  return async () => {
    stop.abort()
    await looking
  }
}

const looks = 100

/** Time of the backend's processor where the system tells it, and time on the clock. */
async function costOf(observer: Observer, pool: Pool): Promise<readonly (readonly string[])[]> {
  const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const pid = rows[0]?.pid as number
  const before = secondsOf(pid)
  const took: number[] = []
  for (let look = 0; look < looks; look += 1) {
    const began = performance.now()
    await observer.locks()
    took.push(performance.now() - began)
  }
  const after = secondsOf(pid)
  const middle = took.toSorted((a, b) => a - b)[looks / 2] as number
  const clock = ['on the clock, under load, the middle of a hundred', middle.toFixed(1)]
  if (before === undefined || after === undefined) return [clock]
  const each = ((after - before) * 1_000) / looks
  return [
    clock,
    [
      'of a processor, in the server; once a second a tenth of it is the share of one in %',
      each.toFixed(2),
    ],
  ]
}
