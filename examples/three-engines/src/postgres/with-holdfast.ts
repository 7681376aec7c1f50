import { createHoldfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { leaseMs, picturesAllowed } from '../settings.ts'
import { slow, untilStopped, type Work } from '../work.ts'

export function withHoldfast(url: string): Work {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  const driver = fromPg(pool)
  const hf = createHoldfast(driver)
  const jobs = hf.claims<{ id: string }>({
    table: 'job',
    lease: leaseMs,
    columns: { status: 'state' },
    select: ['id'],
  })
  return {
    install: async () => void (await migrate(driver)),

    sell: () =>
      hf.guard(lockKey('inventory', 'lamp'), async (tx) => {
        const { rows } = await tx.query<{ quantity: number }>(
          `SELECT quantity FROM inventory WHERE sku = 'lamp'`,
        )
        if ((rows[0]?.quantity ?? 0) < 1) return false
        await slow()
        await tx.query(`UPDATE inventory SET quantity = quantity - 1 WHERE sku = 'lamp'`)
        await tx.query(`INSERT INTO sale (sku) VALUES ('lamp')`)
        return true
      }),

    upload: () =>
      hf.guard(lockKey('pictures', 7), async (tx) => {
        const { rows } = await tx.query<{ kept: number }>(
          'SELECT COUNT(*)::int AS kept FROM picture WHERE user_id = 7',
        )
        if ((rows[0]?.kept ?? 0) >= picturesAllowed) return false
        await slow()
        await tx.query('INSERT INTO picture (user_id) VALUES (7)')
        return true
      }),

    order: () =>
      hf.transaction(async (tx) => {
        const { rows } = await tx.query<{ id: number }>(
          'INSERT INTO orders DEFAULT VALUES RETURNING id',
        )
        await slow()
        await tx.query('INSERT INTO outbox (order_id) VALUES ($1)', [rows[0]?.id])
      }),

    jobs: async (stopped) => {
      const worker = await jobs.run({
        recoverEvery: leaseMs / 2,
        handler: async ({ id }, { claim }) => {
          await slow()
          await hf.transaction(async (tx) => {
            await tx.query('INSERT INTO effect (job_id) VALUES ($1)', [id])
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
            await tx.query('INSERT INTO report (tick) VALUES ($1)', [at.getTime() / 1000])
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
