import type pg from 'pg'
import type { Claims, ClaimsOptions } from '../../src/entries/claims.ts'
import { optionsFor, tableText } from './claims-table.ts'
import { type PgFixture, pgFixture } from './pg-fixture.ts'

export { optionsFor, tableText } from './claims-table.ts'

/** A row of it, as `pg` reads one. */
export interface Task {
  readonly id: string
  readonly tenant: string
  readonly state: string
  readonly tries: number
  readonly why: string | null
}

export interface ClaimsFixture extends PgFixture {
  /** A new table, with as many rows, and claims over it. */
  table(
    rows: number,
    options?: Partial<ClaimsOptions>,
  ): Promise<{ name: string; claims: Claims<pg.PoolClient, Task> }>
  /** All rows, oldest first. */
  rows(name: string): Promise<Task[]>
}

export function claimsFixture(): ClaimsFixture {
  const fixture = pgFixture() as ClaimsFixture
  let tables = 0
  fixture.table = async (rows, options = {}) => {
    tables += 1
    const name = `task_${tables}`
    await fixture.observer.query(tableText(name))
    await fixture.observer.query(
      `INSERT INTO ${name} (due) SELECT now() - interval '1 hour' + g * interval '1 ms' FROM generate_series(1, ${rows}) g`,
    )
    return { name, claims: fixture.hf.claims<Task>({ ...optionsFor(name), ...options }) }
  }
  fixture.rows = async (name) =>
    (await fixture.observer.query<Task>(`SELECT * FROM ${name} ORDER BY id`)).rows
  return fixture
}

/** The lease is over, as if its time had passed. */
export async function expire(observer: pg.Pool, table: string): Promise<void> {
  await observer.query(
    `UPDATE ${table} SET until = now() - interval '1 ms' WHERE until IS NOT NULL`,
  )
}

export function ids(claims: readonly { readonly row: { readonly id: string } }[]): number[] {
  return claims.map(({ row }) => Number(row.id))
}
