/** Money of customers: read, reckoned, written. */
import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core'
import type { Pool, PoolClient } from 'pg'
import { Refused } from './refused.ts'
import type { Routes } from './shop.ts'
import { transaction } from './transaction.ts'

const wallets = pgTable('wallets', {
  customerId: integer('customer_id').primaryKey(),
  balance: integer('balance').notNull(),
})
const purses = pgTable('purses', {
  customerId: integer('customer_id').primaryKey(),
  balance: integer('balance').notNull(),
})
const customers = pgTable('customers', {
  id: integer('id').primaryKey(),
  name: text('name').notNull(),
  tags: jsonb('tags').$type<string[]>().notNull(),
})

interface Withdrawal {
  readonly customer: number
  readonly amount: number
}

interface Transfer {
  readonly from: number
  readonly to: number
  readonly amount: number
}

export function balanceRoutes(pool: Pool): Routes {
  const db = drizzle(pool)
  return {
    // Racy: what was read is what is written, less the amount.
    'POST /wallet/withdraw': ({ customer, amount }: Withdrawal) =>
      db.transaction(async (tx) => {
        const [wallet] = await tx.select().from(wallets).where(eq(wallets.customerId, customer))
        if (!wallet || wallet.balance < amount) throw new Refused(409, 'not enough')
        const balance = wallet.balance - amount
        await tx.update(wallets).set({ balance }).where(eq(wallets.customerId, customer))
        return { withdrawn: amount }
      }),
    // Safe: the row is locked before it is read.
    'POST /purse/withdraw': ({ customer, amount }: Withdrawal) =>
      db.transaction(async (tx) => {
        const [purse] = await tx
          .select()
          .from(purses)
          .where(eq(purses.customerId, customer))
          .for('update')
        if (!purse || purse.balance < amount) throw new Refused(409, 'not enough')
        const balance = purse.balance - amount
        await tx.update(purses).set({ balance }).where(eq(purses.customerId, customer))
        return { withdrawn: amount }
      }),
    // Racy: a list is read, made longer, and written.
    'POST /profile/tag': async ({ customer, tag }: { customer: number; tag: string }) => {
      const [found] = await db.select().from(customers).where(eq(customers.id, customer))
      if (!found) throw new Refused(404, 'unknown')
      const tags = [...found.tags, tag]
      await db.update(customers).set({ tags }).where(eq(customers.id, customer))
      return { tagged: customer }
    },
    // Safe: SERIALIZABLE, and tried again.
    'POST /deposits/transfer': (order: Transfer) =>
      retried(() =>
        transaction(pool, (client) => move(client, order), 'BEGIN ISOLATION LEVEL SERIALIZABLE'),
      ),
  }
}

async function move(client: PoolClient, { from, to, amount }: Transfer): Promise<unknown> {
  const balanceOf = async (customer: number): Promise<number> => {
    const { rows } = await client.query('SELECT balance FROM deposits WHERE customer_id = $1', [
      customer,
    ])
    return rows[0]?.balance ?? 0
  }
  const [mine, theirs] = [await balanceOf(from), await balanceOf(to)]
  if (mine < amount) throw new Refused(409, 'not enough')
  const set = 'UPDATE deposits SET balance = $2 WHERE customer_id = $1'
  await client.query(set, [from, mine - amount])
  await client.query(set, [to, theirs + amount])
  return { moved: amount }
}

async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let time = 1; ; time += 1) {
    try {
      return await work()
    } catch (error) {
      const { code } = error as { code?: string }
      if ((code !== '40001' && code !== '40P01') || time === 5) throw error
    }
  }
}
