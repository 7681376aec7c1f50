import type { Pool, PoolConnection, RowDataPacket } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast } from '../../packages/holdfast/src/mysql.ts'
import { numberOf, openInnodbPool, rowsOf } from '../engines/innodb-pool.ts'
import type { ClaimsStore } from './claims-store.ts'
import { type TaskRow, taskOptions } from './claims-table.ts'

const tables = [
  `CREATE TABLE task (
     id BIGINT PRIMARY KEY,
     tenant VARCHAR(20) NOT NULL DEFAULT 'one',
     status VARCHAR(10) NOT NULL DEFAULT 'pending',
     claim_token CHAR(36),
     lease_until TIMESTAMP(6) NULL,
     attempts INT NOT NULL DEFAULT 0,
     KEY due (status, id),
     KEY leases (status, lease_until)
   ) ENGINE=InnoDB`,
  `CREATE TABLE effect (seq BIGINT AUTO_INCREMENT PRIMARY KEY, task BIGINT NOT NULL, pid INT NOT NULL, KEY (task)) ENGINE=InnoDB`,
  `CREATE TABLE history (seq BIGINT AUTO_INCREMENT PRIMARY KEY, task BIGINT NOT NULL, began INT NOT NULL, attempt INT NOT NULL,
     at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE=InnoDB`,
  `CREATE TRIGGER remember AFTER UPDATE ON task FOR EACH ROW
   IF (OLD.status = 'claimed') <> (NEW.status = 'claimed') THEN
     INSERT INTO history (task, began, attempt) VALUES (NEW.id, NEW.status = 'claimed', NEW.attempts);
   END IF`,
]

/** Rows of one INSERT. */
const atOnce = 5_000

export function innodbClaimsStore(url: string, size: number): ClaimsStore<PoolConnection> {
  const pool = openInnodbPool(url, size)
  const hf = createHoldfast(fromMysql2(pool))
  let isMariadb: boolean | undefined
  return {
    claims: hf.claims<TaskRow>({ ...taskOptions, table: 'task' }),
    async fill(tasks) {
      for (const text of tables) await pool.query(text)
      for (let from = 1; from <= tasks; from += atOnce) {
        const ids = Array.from({ length: Math.min(atOnce, tasks - from + 1) }, (_, at) => from + at)
        await pool.query(`INSERT INTO task (id) VALUES ${ids.map((id) => `(${id})`).join()}`)
      }
      await pool.query('ANALYZE TABLE task')
    },
    async look(duplicatesToo) {
      const [told] = await rowsOf(pool, 'SELECT VERSION() AS version')
      isMariadb ??= String(told?.['version']).includes('MariaDB')
      const connection = await pool.getConnection()
      try {
        // It must not lock what is between the rows.
        await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
        const shared = isMariadb ? 'LOCK IN SHARE MODE' : 'FOR SHARE'
        const free = await rowsOf(
          connection,
          `SELECT claim_token FROM task FORCE INDEX (leases)
           WHERE status = 'claimed' AND lease_until < NOW(6) ${shared} SKIP LOCKED`,
        )
        const [row] = await rowsOf(
          connection,
          `SELECT (SELECT COUNT(*) FROM task WHERE status IN ('pending', 'claimed')) AS left_,
             COALESCE((SELECT MAX(TIMESTAMPDIFF(MICROSECOND, lease_until, NOW(6))) FROM task
               WHERE status = 'claimed'), 0) / 1000 AS overdue,
             UNIX_TIMESTAMP(NOW(6)) * 1000 AS now`,
        )
        return {
          left: Number(row?.['left_']),
          overdue: Number(row?.['overdue']),
          now: Number(row?.['now']),
          tokens: [...new Set(free.map(({ claim_token: token }) => String(token)))],
          duplicates: duplicatesToo
            ? await numberOf(connection, 'SELECT COUNT(*) - COUNT(DISTINCT task) FROM effect')
            : 0,
        }
      } finally {
        connection.release()
      }
    },
    findings: async (window) => ({
      duplicates: await numberOf(pool, 'SELECT COUNT(*) - COUNT(DISTINCT task) FROM effect'),
      missing: await numberOf(
        pool,
        'SELECT COUNT(*) FROM task t LEFT JOIN effect e ON e.task = t.id WHERE e.task IS NULL',
      ),
      recovered: await numberOf(
        pool,
        'SELECT COUNT(*) FROM history WHERE began = 1 AND attempt > 1',
      ),
      displaced: await numberOf(
        pool,
        `SELECT COALESCE(MAX(ABS(task - CAST(place AS SIGNED))), 0) FROM (
           SELECT task, ROW_NUMBER() OVER (ORDER BY seq) AS place FROM history
           WHERE began = 1 AND attempt = 1) AS first`,
      ),
      overtakenMs: await overtakenMs(pool, window),
    }),
    transaction: async (body) => await hf.transaction(body),
    async effects(tx, ids) {
      const rows = ids.map((id) => [id, process.pid])
      await tx.query('INSERT INTO effect (task, pid) VALUES ?', [rows])
    },
    async finishUnfenced(tx, ids) {
      await tx.query(`UPDATE task SET status = 'done' WHERE id IN (?) AND status = 'claimed'`, [
        ids,
      ])
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

/** How long after a row that is a window behind it a row was claimed at most. MariaDB needs hours to say so itself. */
async function overtakenMs(pool: Pool, window: number): Promise<number> {
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT UNIX_TIMESTAMP(at) * 1000 AS ms FROM history WHERE began = 1 AND attempt = 1 ORDER BY task`,
  )
  const times = rows.map(({ ms }) => Number(ms))
  let [earliest, most] = [Infinity, 0]
  for (let at = times.length - 1; at >= window; at -= 1) {
    earliest = Math.min(earliest, times[at] ?? Infinity)
    most = Math.max(most, (times[at - window] ?? 0) - earliest)
  }
  return most
}
