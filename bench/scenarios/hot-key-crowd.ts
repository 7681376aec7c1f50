import { setTimeout as pause } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'

export const poolSize = 8
export const crowdSize = 64

const hot = lockKey('bench', 'hot')

/** How long a guard waited for the key, from its call to its body. */
export interface Wait {
  readonly ms: number
  /** Guards that were let in meanwhile. */
  readonly turns: number
}

/** Callers of one key, all on one pool. */
export interface Crowd extends AsyncDisposable {
  readonly pool: Pool
  /** One guard of the hot key. */
  call(queue: boolean): Promise<Wait>
  /** All of them at once, each again and again. Gives their waits. */
  rush(ms: number, queue: boolean): Promise<Wait[]>
}

export async function openCrowd(url: string): Promise<Crowd> {
  const pool = await openPool(url, poolSize)
  const hf: Holdfast<PoolClient> = createHoldfast(fromPg(pool))
  let served = 0
  const call = async (queue: boolean): Promise<Wait> => {
    const [began, before] = [performance.now(), served]
    const body = async (): Promise<Wait> => {
      served += 1
      return { ms: performance.now() - began, turns: served - before }
    }
    return await hf.guard(hot, body, { queue, waitMs: 60_000 })
  }
  return {
    pool,
    call,
    async rush(ms, queue) {
      const waits: Wait[] = []
      const until = performance.now() + ms
      const caller = async (): Promise<void> => {
        while (performance.now() < until) waits.push(await call(queue))
      }
      await Promise.all(Array.from({ length: crowdSize }, caller))
      return waits
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

/** Latencies of a query that has nothing to do with the key, sent at any time while `during` lasts. */
export async function bystander(pool: Pool, during: Promise<unknown>): Promise<number[]> {
  let isOver = false
  const over = during.finally(() => (isOver = true))
  const latencies: number[] = []
  while (!isOver) {
    await pause(1 + Math.random() * 4)
    const began = performance.now()
    await pool.query('SELECT 1')
    latencies.push(performance.now() - began)
  }
  await over
  return latencies
}
