import { fromMysql2 } from 'holdfast/drivers/mysql2'
import { createHoldfast, lockKey, migrate } from 'holdfast/mysql'
import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import { leaseMs, picturesAllowed } from '../settings.ts'
import { slow, untilStopped, type Work } from '../work.ts'

export function withHoldfast(url: string): Work {
  const pool = createPool({ uri: url, connectionLimit: 8 })
  const driver = fromMysql2(pool)
  const hf = createHoldfast(driver)
  const jobs = hf.claims<{ id: number }>({
    table: 'job',
    lease: leaseMs,
    columns: { status: 'state' },
    select: ['id'],
  })
  return {
    install: () => migrate(driver),

    sell: () =>
      hf.guard(lockKey('inventory', 'lamp'), async (tx) => {
        const [rows] = await tx.query<RowDataPacket[]>(
          `SELECT quantity FROM inventory WHERE sku = 'lamp'`,
        )
        if (rows[0]?.['quantity'] < 1) return false
        await slow()
        await tx.query(`UPDATE inventory SET quantity = quantity - 1 WHERE sku = 'lamp'`)
        await tx.query(`INSERT INTO sale (sku) VALUES ('lamp')`)
        return true
      }),

    upload: () =>
      hf.guard(lockKey('pictures', 7), async (tx) => {
        const [rows] = await tx.query<RowDataPacket[]>(
          'SELECT COUNT(*) AS kept FROM picture WHERE user_id = 7',
        )
        if (rows[0]?.['kept'] >= picturesAllowed) return false
        await slow()
        await tx.query('INSERT INTO picture (user_id) VALUES (7)')
        return true
      }),

    order: () =>
      hf.transaction(async (tx) => {
        const [{ insertId }] = await tx.query<ResultSetHeader>('INSERT INTO orders () VALUES ()')
        await slow()
        await tx.execute('INSERT INTO outbox (order_id) VALUES (?)', [insertId])
      }),

    jobs: async (stopped) => {
      const worker = await jobs.run({
        recoverEvery: leaseMs / 2,
        handler: async ({ id }, { claim }) => {
          await slow()
          await hf.transaction(async (tx) => {
            await tx.execute('INSERT INTO effect (job_id) VALUES (?)', [id])
            await jobs.complete(tx, claim)
          })
        },
      })
      await untilStopped(stopped)
      await worker.stop()
    },

    report: async (stopped) => {
      const running = hf
        .schedule({
          name: 'report',
          every: '1 s',
          guarantee: 'transactional',
          handler: async (tx, { at }) => {
            await tx.execute('INSERT INTO report (tick) VALUES (?)', [at.getTime() / 1000])
          },
        })
        .start()
      await untilStopped(stopped)
      await running.stop()
    },

    close: async () => {
      await hf.close()
      await pool.end()
    },
  }
}
