import { randomInt, randomUUID } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'

/** One thing that applications do, as often as asked. */
export interface Kind {
  readonly name: string
  /** How many are under way at any time. */
  readonly workers: number
  operation(): Promise<unknown>
}

/** Callers of one process that wait at the same time; what can be sent together is. */
const callers = 512
const apart = 16
const keys = 100_000
const skus = 1_000
const linesOfAnOrder = 5

/** What others are compared with: the least that a durable write costs this server. */
export const yardstick = 'INSERT of one small row by itself'

export const yardstickTable =
  'CREATE TABLE yardstick (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text)'

export async function kindsOn(pool: Pool): Promise<readonly Kind[]> {
  const hf = createHoldfast(fromPg(pool))
  const quota = hf.quota({ name: 'capacity', limit: 1_000_000_000_000, per: 'lifetime' })
  const stock = hf.stock({ name: 'capacity' })
  const work = hf.work({ queue: 'capacity' })
  const anyKey = (): string => `key-${randomInt(keys)}`
  const operationId = randomUUID
  await stock.receive(
    Array.from({ length: skus }, (_, at) => ({ sku: `sku-${at}`, quantity: 1_000_000_000 })),
    { externalId: 'opening' },
  )
  const kind = (name: string, workers: number, operation: () => Promise<unknown>): Kind => ({
    name,
    workers,
    operation,
  })
  return [
    kind(yardstick, apart, () =>
      pool.query({
        name: 'yardstick',
        text: 'INSERT INTO yardstick (note) VALUES ($1)',
        values: ['note'],
      }),
    ),
    kind('consume, one key', callers, () =>
      quota.consume('hot', 1, { operationId: operationId() }),
    ),
    kind('consume, 100,000 keys', callers, () =>
      quota.consume(anyKey(), 1, { operationId: operationId() }),
    ),
    kind('consume in a transaction of the caller', apart, () =>
      hf.transaction((tx: PoolClient) =>
        quota.consume(tx, anyKey(), 1, { operationId: operationId() }),
      ),
    ),
    kind('hold and settle', callers, async () => {
      const held = await quota.hold(anyKey(), 1, { operationId: operationId(), ttl: '10 min' })
      if (held.ok && held.holdId !== undefined) await quota.settle(held.holdId, 1)
    }),
    kind(`order of ${linesOfAnOrder} articles`, callers, () => {
      const first = randomInt(skus)
      const lines = Array.from({ length: linesOfAnOrder }, (_, at) => ({
        sku: `sku-${(first + at * 37) % skus}`,
        quantity: 1,
      }))
      return stock.issue(lines, { externalId: operationId() })
    }),
    kind('guard with an empty body', apart, () =>
      hf.guard(lockKey('capacity', randomUUID()), async () => undefined),
    ),
    kind('once, a new key', apart, () => hf.once(randomUUID(), async () => ({ done: true }))),
    kind('lease, taken and given back', apart, async () => {
      const lease = await hf.leases.acquire(`lease-${randomUUID()}`, { ttl: '10 s' })
      await lease.release()
    }),
    kind('job: enqueued, claimed, completed', apart, async () => {
      await work.enqueue({ payload: { task: 1 } })
      await work.complete(await work.claim(1))
    }),
  ]
}
