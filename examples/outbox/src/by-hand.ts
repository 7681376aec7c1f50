import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { charge, type Message, prepare } from './deliver.ts'
import { concurrency, leaseMs } from './settings.ts'

/**
 * What everybody writes: SKIP LOCKED, a state for what is under way, and a sweep for what takes too long.
 * Nothing stops a process that was only slow from finishing what another one has taken over.
 */
export async function deliverByHand(pool: pg.Pool, isStopping: () => boolean): Promise<void> {
  while (!isStopping()) {
    await pool.query(
      `UPDATE outbox SET state = 'new'
       WHERE state = 'at work' AND started_at < now() - $1 * interval '1 millisecond'`,
      [leaseMs],
    )
    const { rows } = await pool.query<Message>(
      `UPDATE outbox SET state = 'at work', started_at = now() WHERE id IN (
         SELECT id FROM outbox WHERE state = 'new' ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED)
       RETURNING id, order_id`,
      [concurrency],
    )
    if (rows.length === 0) await pause(50)
    await Promise.all(rows.map((message) => deliverOne(pool, message)))
  }
}

async function deliverOne(pool: pg.Pool, message: Message): Promise<void> {
  await prepare()
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await charge(client, message)
    await client.query(`UPDATE outbox SET state = 'done' WHERE id = $1`, [message.id])
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}
