import { setTimeout as pause } from 'node:timers/promises'
import { leaseMs, picturesAllowed } from '../settings.ts'
import { nextSecond, slow, type Work } from '../work.ts'
import { open } from './open.ts'

export function byHand(file: string): Work {
  const db = open(file)
  db.exec('PRAGMA busy_timeout = 5000')
  return {
    // Two buyers read the same quantity.
    sell: async () => {
      const row = db.prepare(`SELECT quantity FROM inventory WHERE sku = 'lamp'`).get()
      if (Number(row?.['quantity']) < 1) return false
      await slow()
      db.exec(`UPDATE inventory SET quantity = quantity - 1 WHERE sku = 'lamp'`)
      db.exec(`INSERT INTO sale (sku) VALUES ('lamp')`)
      return true
    },

    // Two uploads count the same pictures.
    upload: async () => {
      const row = db.prepare('SELECT COUNT(*) AS kept FROM picture WHERE user_id = 7').get()
      if (Number(row?.['kept']) >= picturesAllowed) return false
      await slow()
      db.exec('INSERT INTO picture (user_id) VALUES (7)')
      return true
    },

    // Whoever is killed between the two has told nobody.
    order: async () => {
      const { lastInsertRowid } = db.prepare('INSERT INTO orders DEFAULT VALUES').run()
      await slow()
      db.prepare('INSERT INTO outbox (order_id) VALUES (?)').run(lastInsertRowid)
    },

    // One statement claims a job. Whoever was only slow goes on with what another one has taken over.
    jobs: async (stopped) => {
      while (!stopped.aborted) {
        db.prepare(
          `UPDATE job SET state = 'pending' WHERE state = 'claimed' AND started_at < ?`,
        ).run(Date.now() - leaseMs)
        const job = db
          .prepare(
            `UPDATE job SET state = 'claimed', started_at = ?
             WHERE id = (SELECT id FROM job WHERE state = 'pending' ORDER BY id LIMIT 1)
             RETURNING id`,
          )
          .get(Date.now())
        if (job === undefined) {
          await pause(50)
          continue
        }
        await slow()
        db.prepare('INSERT INTO effect (job_id) VALUES (?)').run(job['id'] as number)
        db.prepare(`UPDATE job SET state = 'done' WHERE id = ?`).run(job['id'] as number)
      }
    },

    // Says whether somebody is at work now, not whether the work is done.
    report: async (stopped) => {
      while (!stopped.aborted) {
        const second = await nextSecond(stopped)
        if (stopped.aborted) return
        const { changes } = db.prepare(`INSERT OR IGNORE INTO at_work VALUES ('report')`).run()
        if (changes === 0) continue
        db.prepare('INSERT INTO report (tick) VALUES (?)').run(second)
        await slow()
        db.exec(`DELETE FROM at_work WHERE name = 'report'`)
      }
    },

    close: async () => db.close(),
  }
}
