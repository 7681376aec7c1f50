import { fromNodeSqlite } from 'holdfast/drivers/node-sqlite'
import { createHoldfast, lockKey, migrate } from 'holdfast/sqlite'
import { leaseMs, picturesAllowed } from '../settings.ts'
import { slow, untilStopped, type Work } from '../work.ts'
import { open } from './open.ts'

export function withHoldfast(file: string): Work {
  const driver = fromNodeSqlite(() => open(file))
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
        const row = tx.prepare(`SELECT quantity FROM inventory WHERE sku = 'lamp'`).get()
        if (Number(row?.['quantity']) < 1) return false
        await slow()
        tx.exec(`UPDATE inventory SET quantity = quantity - 1 WHERE sku = 'lamp'`)
        tx.exec(`INSERT INTO sale (sku) VALUES ('lamp')`)
        return true
      }),

    upload: () =>
      hf.guard(lockKey('pictures', 7), async (tx) => {
        const row = tx.prepare('SELECT COUNT(*) AS kept FROM picture WHERE user_id = 7').get()
        if (Number(row?.['kept']) >= picturesAllowed) return false
        await slow()
        tx.exec('INSERT INTO picture (user_id) VALUES (7)')
        return true
      }),

    order: () =>
      hf.transaction(async (tx) => {
        const { lastInsertRowid } = tx.prepare('INSERT INTO orders DEFAULT VALUES').run()
        await slow()
        tx.prepare('INSERT INTO outbox (order_id) VALUES (?)').run(lastInsertRowid)
      }),

    jobs: async (stopped) => {
      const worker = await jobs.run({
        recoverEvery: leaseMs / 2,
        handler: async ({ id }, { claim }) => {
          await slow()
          await hf.transaction(async (tx) => {
            tx.prepare('INSERT INTO effect (job_id) VALUES (?)').run(id)
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
            tx.prepare('INSERT INTO report (tick) VALUES (?)').run(at.getTime() / 1000)
          },
        })
        .start()
      await untilStopped(stopped)
      await running.stop()
    },

    close: async () => {
      await hf.close()
      driver.close()
    },
  }
}
