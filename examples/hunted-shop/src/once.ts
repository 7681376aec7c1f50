/** At most one: an address, an invoice number, an active subscription, a star, a room. */
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { Refused, unlessTaken } from './refused.ts'
import type { Routes } from './shop.ts'
import { transaction } from './transaction.ts'

export function onceRoutes(pool: Pool): Routes {
  return {
    // Racy: nothing in the database keeps a second one out.
    'POST /newsletter/join': async ({ email }: { email: string }) => {
      const { rows } = await pool.query('SELECT id FROM newsletter WHERE email = $1', [email])
      if (rows.length > 0) throw new Refused(409, 'known')
      await pool.query('INSERT INTO newsletter (email) VALUES ($1)', [email])
      return { joined: true }
    },
    // Safe: the same, and a unique index.
    'POST /accounts/register': async ({ email }: { email: string }) => {
      const { rows } = await pool.query('SELECT id FROM accounts WHERE email = $1', [email])
      if (rows.length > 0) throw new Refused(409, 'taken')
      await unlessTaken(pool.query('INSERT INTO accounts (email) VALUES ($1)', [email]))
      return { registered: true }
    },
    // Racy: two read the same highest number.
    'POST /invoices/number': ({ customer }: { customer: number }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          'SELECT coalesce(max(number), 0) + 1 AS next FROM invoices',
        )
        const { next } = rows[0]
        await client.query('INSERT INTO invoices (id, number, customer_id) VALUES ($1, $2, $3)', [
          randomUUID(),
          next,
          customer,
        ])
        return { number: next }
      }),
    // Safe: the counter's row is locked by its UPDATE.
    'POST /statements/number': ({ customer }: { customer: number }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          `UPDATE counters SET value = value + 1 WHERE name = 'statements' RETURNING value`,
        )
        const { value } = rows[0]
        await client.query('INSERT INTO statements (id, number, customer_id) VALUES ($1, $2, $3)', [
          randomUUID(),
          value,
          customer,
        ])
        return { number: value }
      }),
    // Racy: looked for, then added.
    'POST /subscriptions/start': ({ customer }: { customer: number }) =>
      transaction(pool, async (client) => {
        const { rows } = await client.query(
          'SELECT FROM subscriptions WHERE customer_id = $1 AND active',
          [customer],
        )
        if (rows.length > 0) throw new Refused(409, 'active already')
        await client.query(
          'INSERT INTO subscriptions (id, customer_id, active) VALUES ($1, $2, true)',
          [randomUUID(), customer],
        )
        return { started: customer }
      }),
    // Safe: a partial unique index.
    'POST /memberships/start': ({ customer }: { customer: number }) =>
      unlessTaken(
        transaction(pool, async (client) => {
          const { rows } = await client.query(
            'SELECT FROM memberships WHERE customer_id = $1 AND active',
            [customer],
          )
          if (rows.length > 0) throw new Refused(409, 'active already')
          await client.query(
            'INSERT INTO memberships (id, customer_id, active) VALUES ($1, $2, true)',
            [randomUUID(), customer],
          )
          return { started: customer }
        }),
      ),
    // Safe: the second one does nothing.
    'POST /stars': async ({ product, customer }: { product: number; customer: number }) => {
      await pool.query(
        'INSERT INTO stars (product_id, customer_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
        [product, customer],
      )
      return { starred: product }
    },
    // Safe: an exclusion constraint.
    'POST /rooms/reserve': async ({
      from,
      to,
      guest,
    }: {
      from: number
      to: number
      guest: string
    }) => {
      const { rows } = await pool.query(
        'SELECT FROM rooms WHERE hours && int4range($1::int, $2::int)',
        [from, to],
      )
      if (rows.length > 0) throw new Refused(409, 'taken')
      await unlessTaken(
        pool.query(
          'INSERT INTO rooms (id, hours, guest) VALUES ($1, int4range($2::int, $3::int), $4)',
          [randomUUID(), from, to, guest],
        ),
      )
      return { reserved: guest }
    },
    // Safe: written only if it is the version that was read.
    'POST /documents/edit': async ({ id, body }: { id: number; body: string }) => {
      const { rows } = await pool.query('SELECT version FROM documents WHERE id = $1', [id])
      if (!rows[0]) throw new Refused(404, 'unknown')
      const { rowCount } = await pool.query(
        'UPDATE documents SET body = $3, version = version + 1 WHERE id = $1 AND version = $2',
        [id, rows[0].version, body],
      )
      if (rowCount === 0) throw new Refused(409, 'changed meanwhile')
      return { edited: id }
    },
  }
}
