/** Orders and bills: paid once, shipped or cancelled. */
import type { Pool } from 'pg'
import { Refused } from './refused.ts'
import type { Routes } from './shop.ts'
import { transaction } from './transaction.ts'

interface ById {
  readonly id: number
}

/** Charges a card. */
export type Charge = (amount: number) => Promise<void>

export function chargeAt(payments: string | undefined): Charge {
  return async (amount) => {
    if (payments !== undefined) await fetch(`${payments}/charge?amount=${amount}`)
  }
}

export function orderRoutes(pool: Pool, charge: Charge): Routes {
  return {
    // Racy: both find it open while a card is charged.
    'POST /orders/pay': async ({ id }: ById) => {
      const { rows } = await pool.query('SELECT status, total FROM orders WHERE id = $1', [id])
      if (rows[0]?.status !== 'open') throw new Refused(409, 'not open')
      await charge(rows[0].total)
      await transaction(pool, async (client) => {
        await client.query('INSERT INTO payments (order_id, amount) VALUES ($1, $2)', [
          id,
          rows[0].total,
        ])
        await client.query(`UPDATE orders SET status = 'paid' WHERE id = $1`, [id])
      })
      return { paid: id }
    },
    // Safe: the row stays locked while the card is charged.
    'POST /bills/pay': ({ id }: ById) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          'SELECT status, total FROM bills WHERE id = $1 FOR UPDATE',
          [id],
        )
        if (rows[0]?.status !== 'open') throw new Refused(409, 'not open')
        await charge(rows[0].total)
        await client.query('INSERT INTO receipts (bill_id, amount) VALUES ($1, $2)', [
          id,
          rows[0].total,
        ])
        await client.query(`UPDATE bills SET status = 'paid' WHERE id = $1`, [id])
        return { paid: id }
      }),
    // By itself it is safe: one shipment for each order.
    'POST /orders/ship': async ({ id }: ById) => {
      const { rows } = await pool.query('SELECT status FROM orders WHERE id = $1', [id])
      if (rows[0]?.status !== 'paid') throw new Refused(409, 'not paid')
      const { rowCount } = await pool.query(
        'INSERT INTO shipments (order_id) VALUES ($1) ON CONFLICT DO NOTHING',
        [id],
      )
      if (rowCount === 0) throw new Refused(409, 'shipped already')
      return { shipped: id }
    },
    // Racy beside /orders/ship: both can happen to one order. By itself it is safe.
    'POST /orders/cancel': async ({ id }: ById) => {
      const { rowCount } = await pool.query(
        `UPDATE orders SET status = 'cancelled' WHERE id = $1 AND status = 'paid'
           AND NOT EXISTS (SELECT FROM shipments WHERE order_id = $1)`,
        [id],
      )
      if (rowCount === 0) throw new Refused(409, 'not to be cancelled')
      return { cancelled: id }
    },
    // Safe with each other: only one of them finds it open.
    'POST /returns/approve': ({ id }: ById) => decide(pool, id, 'approved'),
    'POST /returns/reject': ({ id }: ById) => decide(pool, id, 'rejected'),
  }
}

async function decide(pool: Pool, id: number, status: string): Promise<unknown> {
  const { rowCount } = await pool.query(
    `UPDATE returns SET status = $2 WHERE id = $1 AND status = 'open'`,
    [id, status],
  )
  if (rowCount === 0) throw new Refused(409, 'decided')
  return { [status]: id }
}
