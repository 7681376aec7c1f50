import type { PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast, migrate } from '../../packages/holdfast/src/mysql.ts'
import { numberOf, openInnodbPool, rowsOf } from '../engines/innodb-pool.ts'
import type { ScheduleStore } from './schedule-store.ts'

export function innodbScheduleStore(url: string, size: number): ScheduleStore<PoolConnection> {
  const pool = openInnodbPool(url, size)
  const driver = fromMysql2(pool)
  const hf = createHoldfast(driver)
  return {
    async prepare() {
      await migrate(driver)
      await pool.query(
        'CREATE TABLE effect (seq BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL, tick BIGINT NOT NULL, who INT, KEY (name, tick)) ENGINE=InnoDB',
      )
    },
    schedule: (options) => hf.schedule(options),
    async effect(tx, name, atMs, by) {
      await (tx ?? pool).query('INSERT INTO effect (name, tick, who) VALUES (?, ?, ?)', [
        name,
        atMs,
        by,
      ])
    },
    async ifFree(body) {
      const connection = await pool.getConnection()
      const [row] = await rowsOf(connection, `SELECT GET_LOCK('try_lock', 0) AS got`)
      if (Number(row?.['got']) === 1) {
        await body(connection)
        await connection.query(`SELECT RELEASE_LOCK('try_lock')`)
      }
      connection.release()
    },
    nowMs: async () => await numberOf(pool, 'SELECT UNIX_TIMESTAMP(NOW(6)) * 1000'),
    async isSettled(untilMs) {
      const untilUs = Math.round(untilMs * 1_000)
      const owed = await rowsOf(
        pool,
        `SELECT name FROM holdfast_schedule WHERE last_tick < ?
         UNION ALL SELECT id FROM holdfast_tick WHERE state < 2 AND tick_at <= ?`,
        [untilUs, untilUs],
      )
      return owed.length === 0
    },
    async effects() {
      const rows = await rowsOf(
        pool,
        'SELECT name, tick, COUNT(*) AS runs FROM effect GROUP BY name, tick',
      )
      return rows.map(({ name, tick, runs }) => ({
        name: String(name),
        atMs: Number(tick),
        runs: Number(runs),
      }))
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
