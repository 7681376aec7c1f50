/** The shop as it is started, on the database of the environment; with `SHOP=fixed` nothing in it races, `CLIENT=prisma` uses Prisma. */
import pg from 'pg'
import { createShop } from './shop.ts'

const { CLIENT, DATABASE_URL, PAYMENTS_URL, SHOP } = process.env

export const pool: pg.Pool = new pg.Pool({ connectionString: DATABASE_URL })

const prisma =
  CLIENT === 'prisma' ? (await import('./prisma/client.ts')).openPrisma(DATABASE_URL) : undefined

/** A listener for `http.createServer`. */
export const app: ReturnType<typeof createShop> = createShop({
  pool,
  prisma,
  payments: PAYMENTS_URL,
  fixed: SHOP === 'fixed',
})
