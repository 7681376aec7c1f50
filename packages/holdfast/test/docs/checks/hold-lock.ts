/** A program of its own, made to be killed: writes under a lock and never commits. */
import { deferred } from '@holdfast/testkit'
import pg from 'pg'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../../src/index.ts'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
await createHoldfast(fromPg(pool)).guard(lockKey('guaranteed', 1), async (tx) => {
  await tx.query('INSERT INTO written VALUES (1)')
  process.send?.('holding')
  await deferred().promise
})
