/** What each flow of the ACIDRain table is written in. */
import type pg from 'pg'

/** One way in which shops of the paper lose a race, written anew for PostgreSQL. */
export interface Attack {
  readonly kind: 'stock' | 'voucher' | 'cart'
  /** What the code does, for the table. */
  readonly does: string
  /** Its tables, with rows that are far from every limit. */
  readonly tables: string
  /** What the suite calls, in this order. */
  readonly calls: readonly Step[]
  /** The two that race, by name. */
  readonly pair: readonly [string, string]
}

export interface Step {
  readonly name: string
  readonly run: (on: pg.Pool, ...values: unknown[]) => Promise<unknown>
  readonly values: readonly unknown[]
}

/** The shop says no. */
export class Refused extends Error {
  readonly status = 409
}

type Column =
  | 'amount'
  | 'code'
  | 'free'
  | 'id'
  | 'inventory'
  | 'most'
  | 'paid'
  | 'pending'
  | 'per_customer'
  | 'quantity'
  | 'sold'
  | 'there'
  | 'title'
  | 'total'
  | 'used'
  | 'uses'

/** Texts are handed on as they are, and nobody looks at them. */
export type Row = { readonly [column in Column]?: number }

/** One that sells, or refuses: with the same values again and again. */
export function once(
  name: string,
  run: (on: pg.Pool, ...values: number[]) => Promise<unknown>,
  ...values: number[]
): Step {
  return { name, run: run as Step['run'], values }
}

/** The first row. */
export async function rowOf(
  on: pg.Pool | pg.PoolClient,
  text: string,
  values: unknown[] = [],
): Promise<Row> {
  const { rows } = await on.query<Row>(text, values)
  const [row] = rows
  if (row === undefined) throw new Refused()
  return row
}

/** The amount in it, which must be enough. */
export function enough(have: number | undefined, wanted: number): void {
  if (have === undefined || have < wanted) throw new Refused()
}

export async function inTransaction<T>(
  pool: pg.Pool,
  begin: string,
  body: (on: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const answer = await body(client)
    await client.query('COMMIT')
    return answer
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
