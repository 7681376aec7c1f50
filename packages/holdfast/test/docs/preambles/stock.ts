/** What the blocks about stock may take for granted: an installed ledger and a shop with some goods. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import type { Stock } from 'holdfast/stock'
import pg from 'pg'

export { createHoldfast } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { migrate } from 'holdfast/schema'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))
await pool.query(`
  CREATE TABLE orders (id text PRIMARY KEY);
  CREATE TABLE product_variant (sku text PRIMARY KEY, stock int NOT NULL);
  INSERT INTO product_variant VALUES ('mug', 12), ('tee', 3)`)

export const stock: Stock<pg.PoolClient, number> = hf.stock({ name: 'shop' })
await stock.receive(
  [
    { sku: 'mug', quantity: 5 },
    { sku: 'tee', quantity: 2 },
  ],
  { externalId: 'delivery-0' },
)

export const webhook: { readonly id: string } = { id: 'webhook-1' }
export const cartId = 'cart-1'
export const payment: { readonly id: string } = { id: 'payment-1' }

export async function close(): Promise<void> {
  await pool.end()
}
