import { integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'

export const coupon = pgTable('coupon', {
  code: text().primaryKey(),
  max: integer().notNull(),
  used: integer().notNull().default(0),
})

export const redemption = pgTable('redemption', {
  requestId: text('request_id').notNull(),
  code: text().notNull(),
  userId: text('user_id').notNull(),
})

export const couponUser = pgTable(
  'coupon_user',
  {
    code: text().notNull(),
    userId: text('user_id').notNull(),
    used: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.code, table.userId] })],
)
