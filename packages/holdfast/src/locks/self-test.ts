import { randomUUID } from 'node:crypto'
import type { Driver, Executor } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isTrue } from '../core/is-true.ts'
import { lockKey } from '../core/lock-key.ts'
import { locksAreReal } from '../engines/postgres/locks/lock-holders.ts'
import { lockAnswer, type LockRequest, lockStatement } from '../engines/postgres/locks/locks.ts'
import { askAll } from '../tx/ask-each.ts'

/** Two idle connections are there at once or the pool has fewer than two. */
const connectLimitMs = 5_000

/**
 * Proves on two connections that the server enforces its advisory locks: while one holds a key,
 * the other must be refused it. Of several primaries each is asked.
 */
export async function selfTest<Tx>(driver: Driver<Tx>): Promise<void> {
  await askAll(driver, testOne)
}

async function testOne<Tx>(driver: Driver<Tx>): Promise<void> {
  const request: LockRequest = {
    wanted: [{ key: lockKey('holdfast-self-test', randomUUID()), mode: 'exclusive' }],
    attempt: true,
    limitMs: undefined,
    yields: false,
    budgetMs: undefined,
    label: undefined,
    allowStaleSnapshot: true,
    first: false,
    brief: false,
  }
  const attempt = (): Promise<boolean> =>
    inTransaction(async (query) => (await query()).granted.length > 0)
  const inTransaction = <T>(
    body: (
      query: () => Promise<ReturnType<typeof lockAnswer>>,
      asked: Executor['query'],
    ) => Promise<T>,
  ): Promise<T> =>
    driver.transaction(
      (transaction) =>
        body(
          async () => lockAnswer((await transaction.query(lockStatement(request)))[0] ?? {}),
          (statement) => transaction.query(statement),
        ),
      { scopes: [] },
    )
  await inTransaction(async (query, asked) => {
    const { refused, granted } = await query()
    if (refused === 'standby')
      throw holdfastError('LOCK_ON_STANDBY', { details: { client: driver.name } })
    const [row] = await asked(locksAreReal)
    if (isTrue(row?.['alone']))
      throw holdfastError('ENGINE_ONE_SESSION', { details: { client: driver.name } })
    const second = await inTime(attempt())
    if (granted.length === 0 || second) {
      throw holdfastError('ENGINE_LOCKS_ARE_STUBS', { details: { client: driver.name } })
    }
  })
}

async function inTime(second: Promise<boolean>): Promise<boolean> {
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
