/** Compiled, never run: options that work have a type, and those that are refused have none. */
import type pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'

export async function onHandlers(pool: pg.Pool): Promise<void> {
  const claims = createHoldfast(fromPg(pool)).claims({ table: 'outbox' })
  await claims.run({ handler: async (row) => row })
  await claims.run({ transactionHandler: async (tx: pg.PoolClient) => await tx.query('') })
  // @ts-expect-error -- one of them would never run
  await claims.run({ handler: async () => 1, transactionHandler: async () => 1 })
  // @ts-expect-error -- one of them is needed
  await claims.run({ concurrency: 1 })
}

export async function onWaits(pool: pg.Pool, tx: pg.PoolClient): Promise<void> {
  const { rows } = createHoldfast(fromPg(pool))
  const change = { version: 1, set: { body: '' } }
  await rows.updateVersioned(tx, 'documents', 1, { ...change, wait: 'nowait' })
  await rows.updateVersioned(tx, 'documents', 1, { ...change, wait: 'inherit' })
  await rows.updateVersioned(tx, 'documents', 1, { ...change, wait: '2 s' })
  // @ts-expect-error -- one row cannot be left out
  await rows.updateVersioned(tx, 'documents', 1, { ...change, wait: 'skip' })
}
