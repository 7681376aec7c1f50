/** What the blocks about quotas, holds and operation ids may take for granted. */
import { randomUUID } from 'node:crypto'
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import type { Quota } from 'holdfast/quota'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

export { randomUUID } from 'node:crypto'
export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { migrate } from 'holdfast/schema'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))
await pool.query('CREATE TABLE orders (id text PRIMARY KEY, total int NOT NULL)')

export const tokens: Quota<pg.PoolClient, number> = hf.quota({
  name: 'tokens',
  limit: 1000,
  per: 'month',
})
export const userId = 'ann'
export const request: { readonly id: string } = { id: 'request-1' }
export const operationId: string = randomUUID()

/** Something slow whose cost is known afterwards. */
export const model = {
  async complete(_prompt: string, _options: { signal: AbortSignal }): Promise<{ tokens: number }> {
    return { tokens: 420 }
  },
}

export async function close(): Promise<void> {
  await pool.end()
}
