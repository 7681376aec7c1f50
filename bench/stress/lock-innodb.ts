import type { PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast, migrate } from '../../packages/holdfast/src/mysql.ts'
import { numberOf, openInnodbPool, rowsOf } from '../engines/innodb-pool.ts'
import type { LockStore } from './lock-store.ts'

const deadlock = 1213

/** Deadlocks of the whole server, as MariaDB and as MySQL count them. */
const counted = {
  mariadb:
    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_DEADLOCKS'",
  mysql: "SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'",
} as const

export function innodbLockStore(url: string, size: number): LockStore<PoolConnection> {
  const pool = openInnodbPool(url, size)
  const driver = fromMysql2(pool)
  const hf = createHoldfast(driver)
  return {
    exclusions: ['none', 'session lock'],
    async prepare() {
      await migrate(driver)
      await pool.query(
        'CREATE TABLE room (seq BIGINT AUTO_INCREMENT PRIMARY KEY, round INT NOT NULL, taker VARCHAR(40) NOT NULL, KEY (round)) ENGINE=InnoDB',
      )
      await pool.query('CREATE TABLE by_hand (name VARCHAR(20) PRIMARY KEY) ENGINE=InnoDB')
    },
    guard: async (keys, body, options) => await hf.guard(keys, body, options),
    transaction: async (body) => await hf.transaction(body),
    async inSessionLock(tx, name, body) {
      await tx.query('SELECT GET_LOCK(?, 60)', [name])
      try {
        return await body()
      } finally {
        await tx.query('SELECT RELEASE_LOCK(?)', [name])
      }
    },
    async takers(tx, round) {
      const [row] = await rowsOf(tx, 'SELECT COUNT(*) AS takers FROM room WHERE round = ?', [round])
      return Number(row?.['takers'])
    },
    async moveIn(tx, round, taker) {
      await tx.query('INSERT INTO room (round, taker) VALUES (?, ?)', [round, taker])
    },
    async overfull() {
      const rows = await rowsOf(
        pool,
        'SELECT round, COUNT(*) AS takers FROM room GROUP BY round HAVING COUNT(*) <> 1',
      )
      return rows.map(({ round, takers }) => ({ round: Number(round), takers: Number(takers) }))
    },
    async linger(tx) {
      await tx.query('SELECT 1')
    },
    async takeInOrder(keys) {
      const connection = await pool.getConnection()
      try {
        for (const key of keys) {
          await connection.query('INSERT IGNORE INTO by_hand VALUES (?)', [key])
        }
        await connection.beginTransaction()
        for (const key of keys) {
          await connection.query('SELECT name FROM by_hand WHERE name = ? FOR UPDATE', [key])
        }
        await connection.commit()
        return false
      } catch (error) {
        if ((error as { errno?: unknown }).errno !== deadlock) throw error
        await connection.rollback()
        return true
      } finally {
        connection.release()
      }
    },
    async deadlocks() {
      const [told] = await rowsOf(pool, 'SELECT VERSION() AS version')
      const isMariadb = String(told?.['version']).includes('MariaDB')
      return await numberOf(pool, isMariadb ? counted.mariadb : counted.mysql)
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
