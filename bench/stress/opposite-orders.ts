import type { PostgresServer } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import { sqlStateOf } from '../../packages/holdfast/src/core/sql-state.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { type Budget, seconds } from '../harness/budget.ts'
import { deadlocksIn } from '../harness/deadlocks-in.ts'
import { openPool } from '../harness/open-pool.ts'
import { randomFor } from '../harness/random.ts'
import type { StressResult } from '../harness/stress-scenario.ts'

const connections = 16
/** Few, so that almost every acquisition meets others. */
const keys: readonly string[] = Array.from({ length: 10 }, (_, index) => `key-${index}`)
const deadlock = '40P01'
/** The control ends at its first deadlock, which takes it a fraction of this. */
const controlSeconds = 20

/** Operations come in pairs that want the same keys in opposite orders. */
function keysOf(seed: number, operation: number): string[] {
  const random = randomFor(seed, operation >> 1)
  const wanted = random.sample(keys, random.integer(2, 5))
  return operation % 2 === 0 ? wanted : wanted.toReversed()
}

/**
 * Many keys in opposite orders. A guard takes them in one order of its own, so there is nothing to
 * deadlock; by hand, one by one, there is.
 */
export async function oppositeOrders(task: {
  readonly server: PostgresServer
  readonly seed: number
  readonly budget: Budget
  readonly progress: (text: string) => void
}): Promise<StressResult> {
  const { server, seed, budget, progress } = task
  const guarded = await guardedOrders(await server.createDatabase('orders'), seed, budget, progress)
  const control = await unsortedOrders(await server.createDatabase('unsorted'), seed)
  return {
    operations: guarded.operations,
    violations: guarded.violations,
    controls: { unsorted: control.deadlocks > 0 ? 'caught' : 'missed' },
    notes: [
      `opposite orders: ${guarded.operations} acquisitions of 2 to 5 of ${keys.length} keys from ${connections} connections`,
      `unsorted: ${control.deadlocks} deadlocks after ${control.operations} acquisitions`,
    ],
  }
}

async function guardedOrders(
  url: string,
  seed: number,
  budget: Budget,
  progress: (text: string) => void,
): Promise<{ operations: number; violations: string[] }> {
  const violations: string[] = []
  /** Who is inside, by key: the server's word is not the only one we take for exclusion. */
  const inside = new Map<string, number>()
  const operations = await spread(url, budget, progress, (pool) => {
    const hf = createHoldfast(fromPg(pool))
    return async (operation) => {
      const wanted = keysOf(seed, operation)
      const alone = async (tx: PoolClient): Promise<void> => {
        for (const key of wanted) {
          const other = inside.get(key)
          if (other !== undefined) violations.push(`${operation} and ${other} both hold ${key}`)
          inside.set(key, operation)
        }
        // Time in which someone who should be outside could come in.
        await tx.query('SELECT 1')
        for (const key of wanted) inside.delete(key)
      }
      try {
        await hf.guard(
          wanted.map((key) => lockKey('stress-order', key)),
          alone,
          {
            waitMs: 60_000,
            onRetry: ({ reason }) => void violations.push(`${operation} was retried: ${reason}`),
          },
        )
      } catch (error) {
        violations.push(`${operation} failed: ${String(error)}`)
      }
    }
  })
  const deadlocks = await deadlocksIn(url)
  if (deadlocks > 0) violations.push(`the server counted ${deadlocks} deadlocks`)
  return { operations, violations }
}

async function unsortedOrders(
  url: string,
  seed: number,
): Promise<{ operations: number; deadlocks: number }> {
  let seen = 0
  const time = seconds(controlSeconds)
  const budget: Budget = { allows: (done) => seen === 0 && time.allows(done) }
  const operations = await spread(url, budget, undefined, (pool) => async (operation) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      for (const key of keysOf(seed, operation)) {
        const { lock } = lockKey('stress-order', key)
        if (lock.kind !== 'bigint') throw new Error('keys of ours are numbers')
        await client.query('SELECT pg_advisory_xact_lock($1)', [lock.id])
      }
      await client.query('COMMIT')
    } catch (error) {
      if (sqlStateOf(error) !== deadlock) throw error
      seen += 1
      await client.query('ROLLBACK')
    } finally {
      client.release()
    }
  })
  return { operations, deadlocks: await deadlocksIn(url) }
}

/** Runs numbered operations on all connections until the budget is spent; gives their number. */
async function spread(
  url: string,
  budget: Budget,
  progress: ((text: string) => void) | undefined,
  prepare: (pool: Pool) => (operation: number) => Promise<void>,
): Promise<number> {
  const pool = await openPool(url, connections)
  const operate = prepare(pool)
  let started = 0
  const worker = async (): Promise<void> => {
    while (budget.allows(started)) {
      const operation = started
      started += 1
      await operate(operation)
      if (started % 1_000 === 0) progress?.(`opposite orders: ${started} acquisitions`)
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, worker))
  } finally {
    await pool.end()
  }
  return started
}
