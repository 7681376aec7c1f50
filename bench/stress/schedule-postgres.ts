import type { PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { openPool } from '../harness/open-pool.ts'
import type { ScheduleStore, TickEffects } from './schedule-store.ts'

export async function postgresScheduleStore(
  url: string,
  size: number,
): Promise<ScheduleStore<PoolClient>> {
  const pool = await openPool(url, size)
  const driver = fromPg(pool)
  const hf = createHoldfast(driver)
  return {
    async prepare() {
      await migrate(driver)
      await pool.query(
        'CREATE TABLE effect (name text NOT NULL, tick timestamptz NOT NULL, by int)',
      )
    },
    schedule: (options) => hf.schedule(options),
    async effect(tx, name, atMs, by) {
      await (tx ?? pool).query(
        'INSERT INTO effect VALUES ($1, to_timestamp($2::float8 / 1000), $3)',
        [name, atMs, by],
      )
    },
    async ifFree(body) {
      const client = await pool.connect()
      await client.query('BEGIN')
      const { rows } = await client.query<{ got: boolean }>(
        'SELECT pg_try_advisory_xact_lock(8739201, 1) AS got',
      )
      if (rows[0]?.got === true) await body(client)
      await client.query('COMMIT')
      client.release()
    },
    async nowMs() {
      const { rows } = await pool.query<{ now: number }>(
        'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
      )
      return rows[0]?.now ?? 0
    },
    async isSettled(untilMs) {
      const { rowCount } = await pool.query(
        `WITH u AS (SELECT to_timestamp($1::float8 / 1000) AS until)
         SELECT FROM holdfast.schedules s, u WHERE s.last_tick < u.until
         UNION ALL SELECT FROM holdfast.ticks t, u WHERE t.state IN ('running', 'waiting') AND t.at <= u.until`,
        [untilMs],
      )
      return rowCount === 0
    },
    async effects() {
      const { rows } = await pool.query<TickEffects>(
        `SELECT name, (extract(epoch FROM tick) * 1000)::float8 AS "atMs", count(*)::int AS runs
         FROM effect GROUP BY name, tick`,
      )
      return rows
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
