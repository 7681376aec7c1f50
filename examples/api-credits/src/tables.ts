import { integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core'

/** The tables of the naive way; Holdfast needs neither. */
export const apiCall = pgTable('api_call', {
  userId: text('user_id').notNull(),
  requestId: text('request_id').notNull(),
  createdAt: timestamp('created_at', { withTimezone: true }).notNull().defaultNow(),
})

/** One row a user. `reserved` is what completions under way have put aside. */
export const wallet = pgTable('wallet', {
  userId: text('user_id').primaryKey(),
  balance: integer('balance').notNull(),
  reserved: integer('reserved').notNull().default(0),
})
