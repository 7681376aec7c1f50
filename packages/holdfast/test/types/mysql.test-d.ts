/** Compiled, never run: what MariaDB and MySQL cannot do has no type there. */
import type { Pool, PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../src/drivers/mysql2.ts'
import { createHoldfast, lockKey } from '../../src/mysql.ts'

export async function onOptions(pool: Pool, tx: PoolConnection): Promise<void> {
  const hf = createHoldfast(fromMysql2(pool))
  const key = lockKey('wallet', 7)
  await hf.transaction(async () => 1, { isolation: 'serializable', deadline: '5 s', retry: false })
  await hf.guard(key, async (inner) => await inner.query('SELECT 1'), { wait: '1 s' })
  await hf.rows.lock(tx, 'wallet', [7], { strength: 'update', wait: 'skip' })
  const set = {
    cents: 5,
    big: 5n,
    body: { a: [1] },
    bytes: Buffer.from(''),
    none: null,
    at: '2026-01-31',
  }
  await hf.rows.updateVersioned(tx, 'wallet', 7, { version: 1, set })
  // @ts-expect-error -- no statement waits for a standby
  await hf.transaction(async () => 1, { durable: true })
  // @ts-expect-error -- the same
  await hf.guard(key, async () => 1, { durable: true })
  // @ts-expect-error -- there is one server
  await hf.guard(key, async () => 1, { scopes: ['north'] })
  // @ts-expect-error -- the same
  await hf.tryGuard(key, async () => 1, { scopes: ['north'] })
  // @ts-expect-error -- the same
  await hf.rows.optimistic(async () => 1, { scopes: ['north'] })
  // @ts-expect-error -- a shared lock
  await hf.rows.lock(tx, 'wallet', [7], { strength: 'share' })
  // @ts-expect-error -- a column has no time zone
  await hf.rows.updateVersioned(tx, 'wallet', 7, { version: 1, set: { at: new Date() } })
  const jobs = hf.claims<{ id: number }>({ table: 'job', columns: { runAt: 'run_at' } })
  await jobs.complete(tx, await jobs.claim(tx, 5))
  await jobs.run({ transactionHandler: async (inner, { id }) => await inner.query(`SELECT ${id}`) })
  const taken = await hf.claims({ mode: 'transaction', table: 'job' }).take(tx, 5)
  await hf.claims({ mode: 'transaction', table: 'job' }).finish(tx, taken)
  // @ts-expect-error -- turns and limits of keys
  hf.claims({ table: 'job', perKey: { column: 'tenant' } })
  // @ts-expect-error -- the same
  hf.claims({ mode: 'transaction', table: 'job', perKey: { column: 'tenant' } })
  // @ts-expect-error -- there is one server
  hf.claims({ table: 'job', bucket: 'id' })
  // @ts-expect-error -- there is no NOTIFY
  await jobs.run({ listen: 'news', handler: async () => 1 })
  // @ts-expect-error -- the queue
  void hf.work
}
