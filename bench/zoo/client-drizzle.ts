import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import type { Pool } from 'pg'
import type { OpenDb } from './clients.ts'
import type { Ask, Isolation } from './model.ts'

export function openDrizzle(pool: Pool): OpenDb {
  const db = drizzle(pool)
  // Drizzle numbers the parameters itself.
  const query = (text: string, values: readonly unknown[]) =>
    drizzleSql.join(
      text
        .split(/(\$\d)/)
        .map((part) =>
          /^\$\d$/.test(part)
            ? drizzleSql`${values[Number(part.slice(1)) - 1]}`
            : drizzleSql.raw(part),
        ),
    )
  return {
    ask: async (text, ...values) => (await db.execute(query(text, values))).rows,
    transaction: (body, isolation) =>
      db.transaction(
        (tx) => {
          const ask: Ask = async (text, ...values) => (await tx.execute(query(text, values))).rows
          return body(ask, ask)
        },
        isolation && { isolationLevel: isolation.toLowerCase() as Lowercase<Isolation> },
      ),
    end: async () => {},
  }
}
