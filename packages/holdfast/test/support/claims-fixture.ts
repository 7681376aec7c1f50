import type pg from 'pg'
import type { Claims, ClaimsOptions } from '../../src/claims/index.ts'
import { type PgFixture, pgFixture } from './pg-fixture.ts'

/** A table of a user, with everything that claims can use; each test takes one of its own. */
export function tableText(name: string): string {
  return `
    CREATE TYPE ${name}_state AS ENUM ('new', 'busy', 'ok', 'given up');
    CREATE TABLE ${name} (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'a',
      state ${name}_state NOT NULL DEFAULT 'new',
      rank int NOT NULL DEFAULT 0,
      due timestamptz NOT NULL DEFAULT clock_timestamp(),
      tries int NOT NULL DEFAULT 0,
      token uuid,
      until timestamptz,
      owner text,
      why text
    );
    CREATE INDEX ON ${name} (due, id) WHERE state = 'new';
    CREATE INDEX ON ${name} (until) WHERE state = 'busy'`
}

/** What `tableText` makes, as claims are told about it. */
export function optionsFor(table: string): ClaimsOptions {
  return {
    table,
    columns: {
      status: 'state',
      token: 'token',
      leaseUntil: 'until',
      attempts: 'tries',
      runAt: 'due',
      error: 'why',
      holder: 'owner',
    },
    values: { pending: 'new', claimed: 'busy', done: 'ok', dead: 'given up' },
    backoff: { first: 1, most: 1 },
  }
}

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
