import { lockKey } from '../../packages/holdfast/src/core/locks/lock-key.ts'
import type { EngineServer } from '../engines/engine.ts'
import { type Budget, seconds } from '../harness/budget.ts'
import { randomFor } from '../harness/random.ts'
import type { StressResult } from '../harness/stress-scenario.ts'
import { type LockStore, openLockStore } from './lock-store.ts'

const connections = 16
/** Few, so that almost every acquisition meets others. */
const keys: readonly string[] = Array.from({ length: 10 }, (_, index) => `key-${index}`)
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
  readonly server: Pick<EngineServer, 'createDatabase'>
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
  const before = await sideCount(url)
  await using store = await openLockStore(url, connections)
  await store.prepare()
  const operations = await spread(budget, progress, async (operation) => {
    const wanted = keysOf(seed, operation)
    const alone = async (tx: unknown): Promise<void> => {
      for (const key of wanted) {
        const other = inside.get(key)
        if (other !== undefined) violations.push(`${operation} and ${other} both hold ${key}`)
        inside.set(key, operation)
      }
      // Time in which someone who should be outside could come in.
      await store.linger(tx)
      for (const key of wanted) inside.delete(key)
    }
    const keysWanted = wanted.map((key) => lockKey('stress-order', key))
    const onRetry = ({ reason }: { reason: string }): void =>
      void violations.push(`${operation} was retried: ${reason}`)
    try {
      await store.guard(keysWanted, alone, { wait: 60_000, onRetry })
    } catch (error) {
      violations.push(`${operation} failed: ${String(error)}`)
    }
  })
  const deadlocks = (await store.deadlocks()) - before
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
  const before = await sideCount(url)
  await using store = await openLockStore(url, connections)
  await store.prepare()
  const operations = await spread(budget, undefined, async (operation) => {
    if (await store.takeInOrder(keysOf(seed, operation))) seen += 1
  })
  return { operations, deadlocks: (await store.deadlocks()) - before }
}

/** Some servers count for all their databases. */
async function sideCount(url: string): Promise<number> {
  await using store: LockStore<unknown> = await openLockStore(url, 1)
  return await store.deadlocks()
}

/** Runs numbered operations on all connections until the budget is spent; gives their number. */
async function spread(
  budget: Budget,
  progress: ((text: string) => void) | undefined,
  operate: (operation: number) => Promise<void>,
): Promise<number> {
  let started = 0
  const worker = async (): Promise<void> => {
    while (budget.allows(started)) {
      const operation = started
      started += 1
      await operate(operation)
      if (started % 1_000 === 0) progress?.(`opposite orders: ${started} acquisitions`)
    }
  }
  await Promise.all(Array.from({ length: connections }, worker))
  return started
}
