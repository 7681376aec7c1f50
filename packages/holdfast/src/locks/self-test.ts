import { randomUUID } from 'node:crypto'
import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { lockKey } from '../core/locks/lock-key.ts'
import { askAll } from '../tx/ask-each.ts'
import type { LockAnswer, LockEngine, LockTerms } from './engine.ts'

/** Two idle connections are there at once or the pool has fewer than two. */
const connectLimitMs = 5_000

const terms: LockTerms = {
  attempt: true,
  limitMs: undefined,
  yields: false,
  budgetMs: undefined,
  label: undefined,
  allowStaleSnapshot: true,
}

/**
 * Proves on two connections that the server enforces its locks: while one holds a key, the other must be refused it.
 * Of several primaries each is asked.
 */
export async function selfTest<Tx>(engine: LockEngine, driver: Driver<Tx>): Promise<void> {
  await askAll(driver, (one) => testOne(engine, one))
}

async function testOne<Tx>(engine: LockEngine, driver: Driver<Tx>): Promise<void> {
  const details = { client: driver.name }
  const key = lockKey('holdfast-self-test', randomUUID())
  const taking = engine.taking(driver, [{ key, mode: 'exclusive' }])
  const take = (transaction: Transaction<Tx>): Promise<LockAnswer> =>
    taking.take(transaction, terms)
  const opened = { scopes: [], bodyWaits: true }
  await driver.transaction(async (transaction) => {
    const { refused, granted } = await take(transaction)
    if (refused !== undefined) throw holdfastError(refused, { details })
    const second = await inTime(driver.transaction(take, opened))
    if (granted.length === 0 || second.granted.length > 0)
      throw holdfastError('ENGINE_LOCKS_ARE_STUBS', { details })
  }, opened)
}

async function inTime<T>(second: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(holdfastError('SELF_TEST_INCONCLUSIVE')), connectLimitMs)
  })
  // Left behind in the queue of a small pool, it ends by itself once we are done.
  second.catch(() => undefined)
  try {
    return await Promise.race([second, limit])
  } finally {
    clearTimeout(timer)
  }
}
