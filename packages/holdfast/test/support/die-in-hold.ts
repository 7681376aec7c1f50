/**
 * A process that never comes back from the middle of its work, as one that is killed. It reports
 * `working` when the work has begun. Started by `fork` with the database's address and a key.
 */
import { once } from 'node:events'
import pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'

const [url, key, way] = process.argv.slice(2) as [string, string, 'hold' | 'charge-then-refund']
const hf = createHoldfast(fromPg(new pg.Pool({ connectionString: url })))
const quota = hf.quota({ name: `death-${way}`, limit: 10, per: 'lifetime' })

/** The model thinks, for ever. */
async function work(): Promise<void> {
  process.send?.('working')
  await once(process, 'message')
}

if (way === 'hold') {
  await quota.withHold(key, { estimate: 4, ttl: '1 h', operationId: 'job' }, work)
} else {
  await quota.consume(key, 4, { operationId: 'job' })
  try {
    await work()
  } finally {
    await quota.refund(key, 4, { operationId: 'job-back', of: 'job' })
  }
}
