import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import type pg from 'pg'
import { charge, type Message, prepare } from './deliver.ts'
import { concurrency, leaseMs } from './settings.ts'

/** The same table, claimed. What is charged and that the message is done commit together, or not at all. */
export async function deliverWithClaims(pool: pg.Pool): Promise<Holdfast<pg.PoolClient>> {
  const hf = createHoldfast(fromPg(pool))
  const outbox = hf.claims<Message>({
    table: 'outbox',
    columns: { status: 'state', attempts: 'attempts' },
    values: { pending: 'new', claimed: 'at work', done: 'done', dead: 'given up' },
    orderBy: ['created_at', 'id'],
    select: ['id', 'order_id'],
    lease: leaseMs,
  })

  await outbox.run({
    concurrency,
    recoverEvery: leaseMs / 2,
    handler: async (message, { claim }) => {
      await prepare()
      await hf.transaction(async (tx) => {
        await charge(tx, message)
        await outbox.complete(tx, claim)
      })
    },
  })
  return hf
}
