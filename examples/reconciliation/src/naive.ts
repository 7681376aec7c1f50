import type { Pool } from 'pg'
import { reconcile } from './reconcile.ts'
import { settings } from './settings.ts'

/** What all processes agree on; any number will do. */
const jobNumber = 4711

/**
 * As most of us write it: every process has a timer, and whoever finds the lock free runs the job. The
 * lock is real. It only says that nobody is at work right now, not that the night is done.
 */
export function startNaive(pool: Pool): void {
  const plan = (): void => {
    const night = (Math.floor(Date.now() / settings.nightMs) + 1) * settings.nightMs
    setTimeout(() => {
      plan()
      runIfFree(pool, new Date(night)).catch((error: unknown) => console.error(error))
    }, night - Date.now())
  }
  plan()
}

async function runIfFree(pool: Pool, night: Date): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query<{ free: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1) AS free',
      [jobNumber],
    )
    if (rows[0]?.free === true) await reconcile(client, night)
    await client.query('COMMIT')
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}
