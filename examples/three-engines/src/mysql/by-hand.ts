import { setTimeout as pause } from 'node:timers/promises'
import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import { leaseMs, picturesAllowed } from '../settings.ts'
import { nextSecond, slow, type Work } from '../work.ts'

export function byHand(url: string): Work {
  const pool = createPool({ uri: url, connectionLimit: 8 })
  return {
    // Two buyers read the same quantity.
    sell: async () => {
      const [rows] = await pool.query<RowDataPacket[]>(
        `SELECT quantity FROM inventory WHERE sku = 'lamp'`,
      )
      if (rows[0]?.['quantity'] < 1) return false
      await slow()
      await pool.query(`UPDATE inventory SET quantity = quantity - 1 WHERE sku = 'lamp'`)
      await pool.query(`INSERT INTO sale (sku) VALUES ('lamp')`)
      return true
    },

    // Two uploads count the same pictures.
    upload: async () => {
      const [rows] = await pool.query<RowDataPacket[]>(
        'SELECT COUNT(*) AS kept FROM picture WHERE user_id = 7',
      )
      if (rows[0]?.['kept'] >= picturesAllowed) return false
      await slow()
      await pool.query('INSERT INTO picture (user_id) VALUES (7)')
      return true
    },

    // Whoever is killed between the two has told nobody.
    order: async () => {
      const [{ insertId }] = await pool.query<ResultSetHeader>('INSERT INTO orders () VALUES ()')
      await slow()
      await pool.execute('INSERT INTO outbox (order_id) VALUES (?)', [insertId])
    },

    // SKIP LOCKED and a sweep. Whoever was only slow goes on with what another one has taken over.
    jobs: async (stopped) => {
      while (!stopped.aborted) {
        await pool.execute(
          `UPDATE job SET state = 'pending'
           WHERE state = 'claimed' AND started_at < NOW(6) - INTERVAL ? MICROSECOND`,
          [leaseMs * 1000],
        )
        const id = await claimJob()
        if (id === undefined) {
          await pause(50)
          continue
        }
        await slow()
        await pool.execute('INSERT INTO effect (job_id) VALUES (?)', [id])
        await pool.execute(`UPDATE job SET state = 'done' WHERE id = ?`, [id])
      }
    },

    // Says whether somebody is at work now, not whether the work is done.
    report: async (stopped) => {
      while (!stopped.aborted) {
        const second = await nextSecond(stopped)
        if (stopped.aborted) return
        const connection = await pool.getConnection()
        const [rows] = await connection.query<RowDataPacket[]>(
          `SELECT GET_LOCK('report', 0) AS mine`,
        )
        if (rows[0]?.['mine'] === 1) {
          await connection.execute('INSERT INTO report (tick) VALUES (?)', [second])
          await slow()
          await connection.query(`DO RELEASE_LOCK('report')`)
        }
        connection.release()
      }
    },

    close: () => pool.end(),
  }

  async function claimJob(): Promise<number | undefined> {
    const connection = await pool.getConnection()
    try {
      await connection.query('START TRANSACTION')
      const [rows] = await connection.query<RowDataPacket[]>(
        `SELECT id FROM job WHERE state = 'pending' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`,
      )
      const id: number | undefined = rows[0]?.['id']
      if (id !== undefined)
        await connection.execute(
          `UPDATE job SET state = 'claimed', started_at = NOW(6) WHERE id = ?`,
          [id],
        )
      await connection.query('COMMIT')
      return id
    } finally {
      connection.release()
    }
  }
}
