import type pg from 'pg'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import type { PgFixture } from '../../support/pg-fixture.ts'

/** The tables of the room, and one of the user's in which every effect leaves a row. */
export function scheduleFixture(): PgFixture {
  return ledgerFixture(
    'CREATE TABLE effect (tick timestamptz NOT NULL, what text NOT NULL, by text)',
  )
}

/** A schedule name that nobody else uses, so long apart that no test meets a real tick of it. */
export const weekly = { every: '7 days' } as const

export function freshName(): string {
  return `s-${fresh()}`
}

/** Makes as many of the latest ticks due as is asked for, as if everybody had slept. */
export async function sleepThrough(
  observer: pg.Pool,
  name: string,
  ticks: number,
  every = '7 days',
): Promise<void> {
  await observer.query(
    `INSERT INTO holdfast.schedule (bucket, name, last_tick)
     SELECT holdfast.bucket_of($1), $1, to_timestamp(
       (floor(extract(epoch FROM clock_timestamp()) / e.s) - $2) * e.s)
     FROM (SELECT extract(epoch FROM $3::interval) AS s) e
     ON CONFLICT (bucket, name) DO UPDATE SET last_tick = excluded.last_tick`,
    [name, ticks, every],
  )
}

/** What the handlers left behind, by tick. */
export async function effects(observer: pg.Pool, what: string): Promise<number[]> {
  const { rows } = await observer.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM effect WHERE what = $1 GROUP BY tick ORDER BY tick',
    [what],
  )
  return rows.map(({ count }) => count)
}

/** Lets the lease of whatever is open run out. */
export async function expireLeases(observer: pg.Pool, name: string): Promise<void> {
  await observer.query(
    `UPDATE holdfast.tick SET lease_until = clock_timestamp() - interval '1 ms'
     WHERE schedule = $1 AND state < 2`,
    [name],
  )
}
