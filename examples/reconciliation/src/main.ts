import pg from 'pg'
import { startNaive } from './naive.ts'
import { startScheduled } from './scheduled.ts'
import { settings } from './settings.ts'

const pool = new pg.Pool({ connectionString: settings.databaseUrl, max: 3 })
await pool.query('SELECT 1')

let running: { stop(): Promise<unknown> } | undefined
if (settings.way === 'naive') startNaive(pool)
else running = startScheduled(pool)
process.send?.({ ready: true })

async function leave(): Promise<void> {
  await running?.stop()
  await pool.end()
  process.exit(0)
}

process.once('SIGTERM', () => void leave())
// Started by another process, such as the demo: end with it, however it ended.
process.once('disconnect', () => void leave())
