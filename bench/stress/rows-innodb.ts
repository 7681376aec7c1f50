import type { PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast, migrate } from '../../packages/holdfast/src/mysql.ts'
import { openInnodbPool, rowsOf } from '../engines/innodb-pool.ts'
import type { RowStore } from './rows-store.ts'

export function innodbRowStore(url: string, size: number): RowStore<PoolConnection> {
  const pool = openInnodbPool(url, size)
  const driver = fromMysql2(pool)
  return {
    hf: createHoldfast(driver),
    async prepare(accounts) {
      await migrate(driver)
      await pool.query(
        'CREATE TABLE account (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 0, version INT NOT NULL DEFAULT 1) ENGINE=InnoDB',
      )
      await pool.query(
        'CREATE TABLE line (id CHAR(36) PRIMARY KEY, account INT NOT NULL, KEY (account)) ENGINE=InnoDB',
      )
      for (let id = 0; id < accounts; id += 1)
        await pool.query('INSERT INTO account (id) VALUES (?)', [id])
    },
    async read(tx, account) {
      const [row] = await rowsOf(tx, 'SELECT v, version FROM account WHERE id = ?', [account])
      return { v: Number(row?.['v']), version: Number(row?.['version']) }
    },
    async write(tx, account, v) {
      await tx.query('UPDATE account SET v = ? WHERE id = ?', [v, account])
    },
    async line(tx, account, id) {
      await tx.query('INSERT INTO line (id, account) VALUES (?, ?)', [id, account])
    },
    async accounts() {
      const rows = await rowsOf(
        pool,
        'SELECT v, version, (SELECT COUNT(*) FROM line WHERE line.account = account.id) AS n FROM account',
      )
      return rows.map(({ v, version, n }) => ({
        v: Number(v),
        version: Number(version),
        lines: Number(n),
      }))
    },
    async linesOf(ids) {
      if (ids.length === 0) return new Set()
      const rows = await rowsOf(pool, 'SELECT id FROM line WHERE id IN (?)', [ids])
      return new Set(rows.map(({ id }) => String(id)))
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
