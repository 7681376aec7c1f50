import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { leaseMs, picturesAllowed } from '../settings.ts'
import { nextSecond, slow, type Work } from '../work.ts'

export function byHand(url: string): Work {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  return {
    // Two buyers read the same quantity.
    sell: async () => {
      const { rows } = await pool.query<{ quantity: number }>(
        `SELECT quantity FROM inventory WHERE sku = 'lamp'`,
      )
      if ((rows[0]?.quantity ?? 0) < 1) return false
      await slow()
      await pool.query(`UPDATE inventory SET quantity = quantity - 1 WHERE sku = 'lamp'`)
      await pool.query(`INSERT INTO sale (sku) VALUES ('lamp')`)
      return true
    },

    // Two uploads count the same pictures.
    upload: async () => {
      const { rows } = await pool.query<{ kept: number }>(
        'SELECT COUNT(*)::int AS kept FROM picture WHERE user_id = 7',
      )
      if ((rows[0]?.kept ?? 0) >= picturesAllowed) return false
      await slow()
      await pool.query('INSERT INTO picture (user_id) VALUES (7)')
      return true
    },

    // Whoever is killed between the two has told nobody.
    order: async () => {
      const { rows } = await pool.query<{ id: number }>(
        'INSERT INTO orders DEFAULT VALUES RETURNING id',
      )
      await slow()
      await pool.query('INSERT INTO outbox (order_id) VALUES ($1)', [rows[0]?.id])
    },

    // SKIP LOCKED and a sweep. Whoever was only slow goes on with what another one has taken over.
    jobs: async (stopped) => {
      while (!stopped.aborted) {
        await pool.query(
          `UPDATE job SET state = 'pending'
           WHERE state = 'claimed' AND started_at < now() - $1 * interval '1 millisecond'`,
          [leaseMs],
        )
        const { rows } = await pool.query<{ id: number }>(
          `UPDATE job SET state = 'claimed', started_at = now() WHERE id = (
             SELECT id FROM job WHERE state = 'pending' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
           RETURNING id`,
        )
        const [job] = rows
        if (job === undefined) {
          await pause(50)
          continue
        }
        await slow()
        await pool.query('INSERT INTO effect (job_id) VALUES ($1)', [job.id])
        await pool.query(`UPDATE job SET state = 'done' WHERE id = $1`, [job.id])
      }
    },

    // Says whether somebody is at work now, not whether the work is done.
    report: async (stopped) => {
      while (!stopped.aborted) {
        const second = await nextSecond(stopped)
        if (stopped.aborted) return
        const client = await pool.connect()
        const { rows } = await client.query<{ mine: boolean }>(
          'SELECT pg_try_advisory_lock(4711) AS mine',
        )
        if (rows[0]?.mine === true) {
          await client.query('INSERT INTO report (tick) VALUES ($1)', [second])
          await slow()
          await client.query('SELECT pg_advisory_unlock(4711)')
        }
        client.release()
      }
    },

    close: () => pool.end(),
  }
}
