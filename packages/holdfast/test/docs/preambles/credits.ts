/** What the blocks about credits may take for granted: an installed ledger and a book on it. */
import { randomUUID } from 'node:crypto'
import { createHoldfast, type Holdfast } from 'holdfast'
import type { Credits } from 'holdfast/credits'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

export { createHoldfast } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { migrate } from 'holdfast/schema'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))

export const credits: Credits<pg.PoolClient, number> = hf.credits({ name: 'credits' })
export const userId = 'ann'
export const invoice: { readonly id: string } = { id: 'invoice-1' }
export const request: { readonly id: string } = { id: 'request-1' }
export const operationId: string = randomUUID()

/** Something slow whose cost is known afterwards. */
export const model = {
  async complete(_prompt: string, _options: { signal: AbortSignal }): Promise<{ cost: number }> {
    return { cost: 37 }
  },
}

export async function close(): Promise<void> {
  await pool.end()
}
