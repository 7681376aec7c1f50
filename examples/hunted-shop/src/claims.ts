/** One for each: vouchers and passes that are given away, and who stays on call. */
import type { Pool } from 'pg'
import { Refused } from './refused.ts'
import type { Routes } from './shop.ts'
import { transaction } from './transaction.ts'

export function claimRoutes(pool: Pool): Routes {
  return {
    // Racy: two find the same one.
    'POST /vouchers/claim': ({ guest }: { guest: string }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          'SELECT id FROM vouchers WHERE owner IS NULL ORDER BY id LIMIT 1',
        )
        if (!rows[0]) throw new Refused(409, 'none left')
        await client.query('UPDATE vouchers SET owner = $2 WHERE id = $1', [rows[0].id, guest])
        return { voucher: rows[0].id }
      }),
    // Safe: found and locked at once.
    'POST /passes/claim': ({ guest }: { guest: string }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          'SELECT id FROM passes WHERE owner IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED',
        )
        if (!rows[0]) throw new Refused(409, 'none left')
        await client.query('UPDATE passes SET owner = $2 WHERE id = $1', [rows[0].id, guest])
        return { pass: rows[0].id }
      }),
    // Racy even at REPEATABLE READ: each leaves a different row.
    'POST /drivers/off-call': ({ id }: { id: number }) =>
      transaction(
        pool,
        async (client) => {
          const { rows } = await client.query(
            'SELECT count(*)::int AS n FROM drivers WHERE on_call',
          )
          if (rows[0].n < 2) throw new Refused(409, 'somebody has to stay')
          await client.query('UPDATE drivers SET on_call = false WHERE id = $1', [id])
          return { off: id }
        },
        'BEGIN ISOLATION LEVEL REPEATABLE READ',
      ),
    // Safe: all of them are locked first, in one order.
    'POST /guards/off-call': ({ id }: { id: number }) =>
      transaction(pool, async (client) => {
        await client.query('SELECT id FROM guards ORDER BY id FOR UPDATE')
        const { rows } = await client.query('SELECT count(*)::int AS n FROM guards WHERE on_call')
        if (rows[0].n < 2) throw new Refused(409, 'somebody has to stay')
        await client.query('UPDATE guards SET on_call = false WHERE id = $1', [id])
        return { off: id }
      }),
  }
}
