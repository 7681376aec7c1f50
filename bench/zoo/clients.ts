/** The clients that the zoo's flows run on. */
import type { Pool } from 'pg'
import postgres from 'postgres'
import type { Ask, Db, Row } from './model.ts'

export const clientNames = ['pg', 'prisma', 'drizzle', 'postgres.js'] as const
export type ClientName = (typeof clientNames)[number]

/** A client of one flow, kept for the whole exploration as an application keeps it. */
export interface OpenDb extends Db {
  end(): Promise<void>
}

interface Reach {
  readonly pool: Pool
  readonly url: string
}

const nothing = async (): Promise<void> => {}

function openPg(pool: Pool): OpenDb {
  return {
    ask: async (text, ...values) => (await pool.query<Row>(text, [...values])).rows,
    async transaction(body, isolation) {
      const client = await pool.connect()
      try {
        await client.query(isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation}`)
        const result = await body(
          async (text, ...values) => (await client.query<Row>(text, [...values])).rows,
          async (text, ...values) => {
            const byOne = { text, values: [...values], rows: 1 }
            return (await client.query<Row>(byOne)).rows
          },
        )
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    },
    end: nothing,
  }
}

function openPostgresJs(url: string): OpenDb {
  const sql = postgres(url, { max: 3, onnotice: () => undefined })
  const ask =
    (on: postgres.Sql | postgres.TransactionSql): Ask =>
    async (text, ...values) => [...(await on.unsafe<Row[]>(text, values as string[]))]
  return {
    ask: ask(sql),
    transaction: async (body, isolation) =>
      (await sql.begin(isolation === undefined ? '' : `ISOLATION LEVEL ${isolation}`, (tx) =>
        body(ask(tx), async (text, ...values) => {
          const rows: Row[] = []
          const cursor = tx.unsafe<Row[]>(text, values as string[]).cursor(1)
          for await (const some of cursor) rows.push(...some)
          return rows
        }),
      )) as never,
    end: () => sql.end({ timeout: 1 }),
  }
}

type Open = (reach: Reach) => Promise<OpenDb>

/** Loads a client when it is first needed: a control that uses none of them does not wait for all. */
export const loadClient: Readonly<Record<ClientName, () => Promise<Open>>> = {
  pg:
    async () =>
    async ({ pool }) =>
      openPg(pool),
  async prisma() {
    const { openPrisma } = await import('./client-prisma.ts')
    return ({ url }) => openPrisma(url)
  },
  async drizzle() {
    const { openDrizzle } = await import('./client-drizzle.ts')
    return async ({ pool }) => openDrizzle(pool)
  },
  'postgres.js':
    async () =>
    async ({ url }) =>
      openPostgresJs(url),
}
