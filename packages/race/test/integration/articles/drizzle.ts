import { asc, eq, isNull, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import type { Pool } from 'pg'
import { cap, event, incomingBytes, limit, lockUser, type OpenClient } from './article-code.ts'

const id = () => integer().primaryKey().generatedAlwaysAsIdentity()
const usage = pgTable('usage', { userId: text('user_id').primaryKey(), used: integer().notNull() })
const userImage = pgTable('user_image', {
  id: id(),
  userId: text('user_id').notNull(),
  byteSize: integer('byte_size').notNull(),
})
const variant = pgTable('variant', { id: integer().primaryKey(), stock: integer().notNull() })
const stockMovement = pgTable('stock_movement', {
  id: id(),
  variantId: integer('variant_id').notNull(),
  change: integer().notNull(),
})
const webhook = pgTable('webhook', { id: id(), externalId: text('external_id').notNull() })
const uniqueWebhook = pgTable('unique_webhook', {
  id: id(),
  externalId: text('external_id').notNull().unique(),
})
const job = pgTable('job', { id: integer().primaryKey(), worker: text() })

export function openDrizzle(pool: Pool): OpenClient {
  const db = drizzle(pool)
  return {
    run: {
      quota: (version) =>
        db.transaction(async (tx) => {
          if (version === 'fixed') await tx.execute(sql.raw(lockUser))
          const [row] = await tx.select().from(usage).where(eq(usage.userId, 'ann'))
          if ((row?.used ?? 0) + 1 > limit) return 'refused'
          await tx
            .update(usage)
            .set({ used: sql`${usage.used} + 1` })
            .where(eq(usage.userId, 'ann'))
          return 'accepted'
        }),
      upload: (version) =>
        db.transaction(async (tx) => {
          if (version === 'fixed') await tx.execute(sql.raw(lockUser))
          const [row] = await tx
            .select({ used: sql<number>`coalesce(sum(${userImage.byteSize}), 0)::int` })
            .from(userImage)
            .where(eq(userImage.userId, 'ann'))
          if ((row?.used ?? 0) + incomingBytes > cap) return 'refused'
          await tx.insert(userImage).values({ userId: 'ann', byteSize: incomingBytes })
          return 'accepted'
        }),
      stock: (version) =>
        db.transaction(async (tx) => {
          const read = tx.select().from(variant).where(eq(variant.id, 1))
          const [row] = version === 'fixed' ? await read.for('update') : await read
          const stock = row?.stock ?? 0
          if (stock < 1) return 'sold out'
          await tx
            .update(variant)
            .set({ stock: stock - 1 })
            .where(eq(variant.id, 1))
          await tx.insert(stockMovement).values({ variantId: 1, change: -1 })
          return 'sold'
        }),
      webhook: (version) =>
        db.transaction(async (tx) => {
          if (version === 'fixed') {
            const inserted = await tx
              .insert(uniqueWebhook)
              .values({ externalId: event })
              .onConflictDoNothing()
              .returning({ externalId: uniqueWebhook.externalId })
            return inserted.length === 1 ? 'handled' : 'seen before'
          }
          const seen = await tx.select().from(webhook).where(eq(webhook.externalId, event))
          if (seen.length > 0) return 'seen before'
          await tx.insert(webhook).values({ externalId: event })
          return 'handled'
        }),
      job: (version, who) =>
        db.transaction(async (tx) => {
          const first = tx
            .select()
            .from(job)
            .where(isNull(job.worker))
            .orderBy(asc(job.id))
            .limit(1)
          const [row] =
            version === 'fixed' ? await first.for('update', { skipLocked: true }) : await first
          if (row === undefined) return 'nothing to do'
          await tx.update(job).set({ worker: who }).where(eq(job.id, row.id))
          return `job ${row.id}`
        }),
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
