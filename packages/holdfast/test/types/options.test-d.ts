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

export function onWindows(pool: pg.Pool): void {
  const { quota } = createHoldfast(fromPg(pool))
  const calls = { name: 'calls', limit: 10 }
  quota({ ...calls, per: 'day', timeZone: 'Europe/Berlin', overage: true })
  quota({ ...calls, rolling: '1 h' })
  quota({ ...calls, rate: '1 s', burst: 20 })
  // @ts-expect-error -- a quota has one window
  quota({ ...calls, per: 'day', rolling: '1 h' })
  // @ts-expect-error -- nor a rate beside it
  quota({ ...calls, per: 'day', rate: '1 s' })
  // @ts-expect-error -- nor both of the others
  quota({ ...calls, rolling: '1 h', rate: '1 s' })
  // @ts-expect-error -- only calendar windows have a time zone
  quota({ ...calls, rolling: '1 h', timeZone: 'UTC' })
  // @ts-expect-error -- only a rate has a burst
  quota({ ...calls, per: 'day', burst: 3 })
  // @ts-expect-error -- one of them is needed
  quota(calls)
}
