import type { PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import { ownFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { openPool } from '../harness/open-pool.ts'
import type { OnceStore } from './once-store.ts'
import { withoutUniqueKeys } from './once-weakened.ts'

export async function postgresOnceStore(url: string, size: number): Promise<OnceStore<PoolClient>> {
  const pool = await openPool(url, size)
  const driver = fromPg(pool)
  const hf = createHoldfast(driver)
  return {
    async prepare(weakened) {
      await migrateFiles(driver, weakened ? withoutUniqueKeys() : ownFiles())
      await pool.query('CREATE TABLE effect (webhook text NOT NULL, id uuid NOT NULL)')
    },
    transaction: async (body) => await hf.transaction(body),
    once: async (webhook, body) => (await hf.once(webhook, body)).result,
    onceIn: async (tx, webhook, body) => (await hf.once(tx, webhook, body)).result,
    async effect(tx, webhook, id) {
      await tx.query('INSERT INTO effect VALUES ($1, $2)', [webhook, id])
    },
    async effectsOf(webhook) {
      const { rows } = await pool.query<{ id: string }>(
        'SELECT id FROM effect WHERE webhook = $1',
        [webhook],
      )
      return rows.map(({ id }) => id)
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
