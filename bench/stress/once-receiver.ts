/** One process that receives webhooks, and may be killed while it works on them; see once.ts. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'
import type { FromReceiver, ToReceiver } from './once.ts'

let pool: Pool
let hf: Holdfast<PoolClient>

process.on('disconnect', () => process.exit(0))
process.on('message', (message: ToReceiver) => {
  handle(message).then(
    (answer) => process.send?.(answer),
    (error: unknown) => process.send?.({ kind: 'answers', answers: [], trouble: String(error) }),
  )
})

async function handle(message: ToReceiver): Promise<FromReceiver> {
  if (message.kind === 'open') {
    pool = await openPool(message.url, message.connections)
    hf = createHoldfast(fromPg(pool))
    return { kind: 'ready' }
  }
  const answers = await Promise.all(
    Array.from({ length: message.duplicates }, (_, at) => receive(message.webhook, at)),
  )
  return { kind: 'answers', answers }
}

/** Half of them in a transaction of their own, half in one of the application's. */
async function receive(webhook: string, at: number): Promise<string> {
  const body = async (tx: PoolClient): Promise<string> => {
    const id = randomUUID()
    await tx.query('INSERT INTO effect VALUES ($1, $2)', [webhook, id])
    await pause(2)
    return id
  }
  if (at % 2 === 0) return (await hf.once(webhook, body)).result
  return await hf.transaction(async (tx) => (await hf.once(tx, webhook, body)).result)
}
