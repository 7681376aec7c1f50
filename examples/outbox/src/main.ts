/** One process that delivers from the outbox until it is told to end. */
import pg from 'pg'
import { deliverByHand } from './by-hand.ts'
import { setting } from './settings.ts'
import { deliverWithClaims } from './with-claims.ts'

const pool = new pg.Pool({ connectionString: setting('DATABASE_URL'), max: 8 })
pool.on('error', () => undefined)
let stopping = false
const told = new Promise<void>((resolve) => {
  process.on('SIGTERM', () => {
    stopping = true
    resolve()
  })
})

process.send?.('ready')
if (setting('WAY') === 'by hand') await deliverByHand(pool, () => stopping)
else {
  const hf = await deliverWithClaims(pool)
  await told
  // Messages that are at work may end; what does not is given back.
  const { left } = await hf.close({ within: '10 s' })
  if (left.length > 0) process.exitCode = 1
}
await pool.end()
process.disconnect?.()
