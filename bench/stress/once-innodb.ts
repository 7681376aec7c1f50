import type { PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast, migrate } from '../../packages/holdfast/src/mysql.ts'
import { openInnodbPool, rowsOf } from '../engines/innodb-pool.ts'
import type { OnceStore } from './once-store.ts'

export function innodbOnceStore(
  url: string,
  size: number,
  weakened: boolean,
): OnceStore<PoolConnection> {
  const pool = openInnodbPool(url, size)
  const driver = fromMysql2(pool)
  const hf = createHoldfast(driver, { wait: '30 s' })

  /** The control: look, work, remember. A table of ours without its key would be refused. */
  const byHand: OnceStore<PoolConnection>['onceIn'] = async (tx, webhook, body) => {
    const [known] = await rowsOf(tx, 'SELECT result FROM remembered WHERE webhook = ?', [webhook])
    if (known !== undefined) return String(known['result'])
    const result = await body(tx)
    await tx.query('INSERT INTO remembered (webhook, result) VALUES (?, ?)', [webhook, result])
    return result
  }
  const onceIn: OnceStore<PoolConnection>['onceIn'] = weakened
    ? byHand
    : async (tx, webhook, body) => (await hf.once(tx, webhook, body)).result
  return {
    async prepare() {
      await migrate(driver)
      for (const table of [
        'effect (webhook VARCHAR(64), id CHAR(36), KEY (webhook))',
        'remembered (webhook VARCHAR(64), result CHAR(36), KEY (webhook))',
      ]) {
        await pool.query(`CREATE TABLE ${table} ENGINE=InnoDB`)
      }
    },
    transaction: async (body) => await hf.transaction(body),
    once: async (webhook, body) =>
      weakened
        ? await hf.transaction(async (tx) => await onceIn(tx, webhook, body))
        : (await hf.once(webhook, body)).result,
    onceIn,
    async effect(tx, webhook, id) {
      await tx.query('INSERT INTO effect VALUES (?, ?)', [webhook, id])
    },
    async effectsOf(webhook) {
      const rows = await rowsOf(pool, 'SELECT id FROM effect WHERE webhook = ?', [webhook])
      return rows.map(({ id }) => String(id))
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}
