import type { PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'
import type { RowStore } from './rows-store.ts'

export async function postgresRowStore(url: string, size: number): Promise<RowStore<PoolClient>> {
  const pool = await openPool(url, size)
  const hf = createHoldfast(fromPg(pool))
  return {
    hf: hf as unknown as RowStore<PoolClient>['hf'],
    async prepare(accounts) {
      await pool.query(
        'CREATE TABLE account (id int PRIMARY KEY, v int NOT NULL DEFAULT 0, version int NOT NULL DEFAULT 1)',
      )
      await pool.query('CREATE TABLE line (id uuid PRIMARY KEY, account int NOT NULL)')
      await pool.query('INSERT INTO account (id) SELECT generate_series(0, $1 - 1)', [accounts])
    },
    async read(tx, account) {
      const { rows } = await tx.query('SELECT v, version FROM account WHERE id = $1', [account])
      return { v: Number(rows[0]?.v), version: Number(rows[0]?.version) }
    },
    async write(tx, account, v) {
      await tx.query('UPDATE account SET v = $2 WHERE id = $1', [account, v])
    },
    async line(tx, account, id) {
      await tx.query('INSERT INTO line (id, account) VALUES ($1, $2)', [id, account])
    },
    async accounts() {
      const { rows } = await pool.query(
        'SELECT v, version, (SELECT count(*)::int FROM line WHERE line.account = account.id) AS lines FROM account',
      )
      return rows
    },
    async linesOf(ids) {
      const { rows } = await pool.query('SELECT id FROM line WHERE id = ANY ($1)', [ids])
      return new Set(rows.map(({ id }) => String(id)))
    },
    [Symbol.asyncDispose]: async () => {
      if (!pool.ending) await pool.end()
    },
  }
}
