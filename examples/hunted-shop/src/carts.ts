/** What is added while somebody pays. */
import type { Pool } from 'pg'
import { Refused } from './refused.ts'
import type { Routes } from './shop.ts'
import { transaction } from './transaction.ts'

interface Item {
  readonly id: number
  readonly price: number
}

export function cartRoutes(pool: Pool): Routes {
  return {
    'POST /cart/add': async ({ id, price }: Item) => {
      await pool.query('INSERT INTO cart_items (cart_id, price) VALUES ($1, $2)', [id, price])
      return { added: price }
    },
    // Racy beside /cart/add: what came after the sum is gone and not paid. By itself it locks the cart.
    'POST /cart/checkout': ({ id }: { id: number }) =>
      transaction(pool, async (client) => {
        await client.query('SELECT FROM carts WHERE id = $1 FOR NO KEY UPDATE', [id])
        const { rows } = await client.query(
          'SELECT coalesce(sum(price), 0)::int AS total FROM cart_items WHERE cart_id = $1',
          [id],
        )
        const { total } = rows[0]
        if (total === 0) throw new Refused(409, 'empty')
        await client.query('INSERT INTO cart_orders (cart_id, total) VALUES ($1, $2)', [id, total])
        await client.query('DELETE FROM cart_items WHERE cart_id = $1', [id])
        return { total }
      }),
    // Safe: both lock the basket.
    'POST /basket/add': ({ id, price }: Item) =>
      transaction(pool, async (client) => {
        await client.query('SELECT FROM baskets WHERE id = $1 FOR UPDATE', [id])
        await client.query('INSERT INTO basket_items (basket_id, price) VALUES ($1, $2)', [
          id,
          price,
        ])
        return { added: price }
      }),
    'POST /basket/checkout': ({ id }: { id: number }) =>
      transaction(pool, async (client) => {
        await client.query('SELECT FROM baskets WHERE id = $1 FOR UPDATE', [id])
        const { rows } = await client.query(
          'SELECT coalesce(sum(price), 0)::int AS total FROM basket_items WHERE basket_id = $1',
          [id],
        )
        const { total } = rows[0]
        if (total === 0) throw new Refused(409, 'empty')
        await client.query('INSERT INTO basket_orders (basket_id, total) VALUES ($1, $2)', [
          id,
          total,
        ])
        await client.query('DELETE FROM basket_items WHERE basket_id = $1', [id])
        return { total }
      }),
  }
}
