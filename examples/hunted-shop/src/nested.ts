/** Checks in nested queries and in WITH: the table that decides is not the first one of the statement. */
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { Refused } from './refused.ts'
import type { Routes } from './shop.ts'

interface ById {
  readonly id: number
}
interface ByGuest {
  readonly guest: string
}

export function nestedRoutes(pool: Pool): Routes {
  const change = async (text: string, values: readonly unknown[]): Promise<void> => {
    const { rowCount } = await pool.query(text, [...values])
    if (rowCount === 0) throw new Refused(409, 'not to be had')
  }
  return {
    // Racy inside of one statement: WITH counts by the snapshot of the statement.
    'POST /raffles/enter': async ({ id, guest }: ById & ByGuest) => {
      await change(
        `WITH entered AS (SELECT count(*) AS n FROM entries WHERE raffle_id = $1)
         INSERT INTO entries (raffle_id, guest) SELECT $1, $2 FROM entered WHERE n < 9`,
        [id, guest],
      )
      return { entered: id }
    },
    // Racy inside of one statement: who has waited for the row does not choose again.
    'POST /badges/hand-out': async ({ guest }: ByGuest) => {
      await change(
        `WITH next AS (SELECT id FROM badges WHERE owner IS NULL ORDER BY id LIMIT 1)
         UPDATE badges SET owner = $1 FROM next WHERE badges.id = next.id`,
        [guest],
      )
      return { given: guest }
    },
    // Safe: the row is locked where it is chosen.
    'POST /medals/hand-out': async ({ guest }: ByGuest) => {
      await change(
        `WITH next AS (SELECT id FROM medals WHERE owner IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
         UPDATE medals SET owner = $1 FROM next WHERE medals.id = next.id`,
        [guest],
      )
      return { given: guest }
    },
    // Racy beside /items/withdraw: what is withdrawn can be reserved. By itself it is safe.
    'POST /items/reserve': async ({ id, guest }: ById & ByGuest) => {
      await change(
        `INSERT INTO reservations (id, item_id, guest)
         SELECT $1, id, $3 FROM items WHERE id = $2 AND NOT withdrawn`,
        [randomUUID(), id, guest],
      )
      return { reserved: id }
    },
    'POST /items/withdraw': async ({ id }: ById) => {
      await change(
        `UPDATE items SET withdrawn = true WHERE NOT withdrawn
           AND id IN (SELECT id FROM items WHERE id = $1)
           AND NOT EXISTS (SELECT FROM reservations WHERE item_id = $1)`,
        [id],
      )
      return { withdrawn: id }
    },
    // Racy beside /tables/close, which calls the same table otherwise. By itself it is safe.
    'POST /tables/seat': async ({ table, guest }: ByGuest & { readonly table: number }) => {
      const { rows } = await pool.query('SELECT open FROM tables WHERE id = $1', [table])
      if (rows[0]?.open !== true) throw new Refused(409, 'closed')
      await pool.query('INSERT INTO seatings (id, table_id, guest) VALUES ($1, $2, $3)', [
        randomUUID(),
        table,
        guest,
      ])
      return { seated: table }
    },
    'POST /tables/close': async ({ id }: ById) => {
      await change(
        `UPDATE tables SET open = false
         WHERE id = $1 AND open AND NOT EXISTS (SELECT FROM seatings WHERE table_id = $1)`,
        [id],
      )
      return { closed: id }
    },
  }
}
