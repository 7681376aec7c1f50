/** No more than so many: coupons, seats, slots, points. */
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { Refused } from './refused.ts'
import type { Routes } from './shop.ts'
import { transaction } from './transaction.ts'

export function limitRoutes(pool: Pool): Routes {
  return {
    // Racy: checked, then written.
    'POST /coupons/redeem': async ({ code }: { code: string }) => {
      const { rows } = await pool.query('SELECT uses, max_uses FROM coupons WHERE code = $1', [
        code,
      ])
      if (!rows[0] || rows[0].uses >= rows[0].max_uses) throw new Refused(409, 'used up')
      await pool.query('UPDATE coupons SET uses = uses + 1 WHERE code = $1', [code])
      return { redeemed: code }
    },
    // Safe: the check is in the UPDATE.
    'POST /gift-cards/redeem': async ({ code }: { code: string }) => {
      const { rows } = await pool.query('SELECT code FROM gift_cards WHERE code = $1', [code])
      if (!rows[0]) throw new Refused(404, 'unknown')
      const { rowCount } = await pool.query(
        'UPDATE gift_cards SET uses = uses + 1 WHERE code = $1 AND uses < max_uses',
        [code],
      )
      if (rowCount === 0) throw new Refused(409, 'used up')
      return { redeemed: code }
    },
    // Racy: a transaction alone does not keep others from being counted.
    'POST /shows/book': ({ show, guest }: { show: number; guest: string }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          `SELECT s.seats, (SELECT count(*)::int FROM bookings b WHERE b.show_id = s.id) AS booked,
                  EXISTS (SELECT FROM bookings b WHERE b.show_id = s.id AND b.guest = $2) AS again
           FROM shows s WHERE s.id = $1`,
          [show, guest],
        )
        if (!rows[0] || rows[0].again || rows[0].booked >= rows[0].seats) {
          throw new Refused(409, 'full')
        }
        await client.query('INSERT INTO bookings (id, show_id, guest) VALUES ($1, $2, $3)', [
          randomUUID(),
          show,
          guest,
        ])
        return { booked: show }
      }),
    // Safe: an advisory lock of the class comes first.
    'POST /classes/join': ({ id, guest }: { id: number; guest: string }) =>
      transaction(pool, async (client) => {
        await client.query('SELECT pg_advisory_xact_lock(77, $1)', [id])
        const { rows } = await client.query(
          `SELECT c.places, (SELECT count(*)::int FROM attendances a WHERE a.class_id = c.id) AS joined
           FROM classes c WHERE c.id = $1`,
          [id],
        )
        if (!rows[0] || rows[0].joined >= rows[0].places) throw new Refused(409, 'full')
        await client.query('INSERT INTO attendances (id, class_id, guest) VALUES ($1, $2, $3)', [
          randomUUID(),
          id,
          guest,
        ])
        return { joined: id }
      }),
    // Racy inside of one statement: the count has the snapshot of the statement.
    'POST /slots/take': async ({ day, guest }: { day: string; guest: string }) => {
      const { rowCount } = await pool.query(
        `INSERT INTO slots (day, guest) SELECT $1, $2
         WHERE (SELECT count(*) FROM slots WHERE day = $1) < 12`,
        [day, guest],
      )
      if (rowCount === 0) throw new Refused(409, 'no slot left')
      return { day }
    },
    // Racy: the sum of many rows is checked, and another row is added.
    'POST /points/spend': ({ customer, points }: { customer: number; points: number }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          'WITH mine AS (SELECT points FROM points WHERE customer_id = $1) SELECT coalesce(sum(points), 0)::int AS have FROM mine',
          [customer],
        )
        if (rows[0].have < points) throw new Refused(409, 'not enough')
        await client.query('INSERT INTO points (id, customer_id, points) VALUES ($1, $2, $3)', [
          randomUUID(),
          customer,
          -points,
        ])
        return { spent: points }
      }),
    // Racy for two customers; for one there is a primary key.
    'POST /teams/join': async ({ team, customer }: { team: number; customer: number }) => {
      const { rows } = await pool.query('SELECT members, most FROM teams WHERE id = $1', [team])
      if (!rows[0] || rows[0].members >= rows[0].most) throw new Refused(409, 'full')
      const { rowCount } = await pool.query(
        'INSERT INTO members (team_id, customer_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
        [team, customer],
      )
      if (rowCount === 0) throw new Refused(409, 'a member already')
      await pool.query('UPDATE teams SET members = members + 1 WHERE id = $1', [team])
      return { joined: team }
    },
    // Safe: the row is locked by the UPDATE that checks it.
    'POST /stock/take': async ({ sku, qty }: { sku: string; qty: number }) => {
      const { rowCount } = await pool.query(
        'UPDATE stock SET qty = qty - $2 WHERE sku = $1 AND qty >= $2',
        [sku, qty],
      )
      if (rowCount === 0) throw new Refused(409, 'sold out')
      return { sku, qty }
    },
  }
}
