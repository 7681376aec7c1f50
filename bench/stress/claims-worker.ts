/** One process that works on tasks until it is told to stop, or killed; see claims-attack.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import { Pool, type PoolClient } from 'pg'
import type { Claim } from '../../packages/holdfast/src/claims/index.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, isHoldfastError } from '../../packages/holdfast/src/index.ts'
import { batch, sweepMs, type TaskRow, taskOptions } from './claims-table.ts'

/** How a process works: by the loop of ours, batch by batch, or without looking at the token. */
export type WorkerMode = 'run' | 'batch' | 'unfenced'

const [url = '', mode = 'batch'] = process.argv.slice(2)
/** How long the work on a batch takes. */
const mostMs = 40
const pool = new Pool({ connectionString: url, max: 8 })
// The server ends transactions of processes that were paused in them.
pool.on('error', () => undefined)
pool.on('connect', (client) => void client.on('error', () => undefined))
const hf = createHoldfast(fromPg(pool))
const tasks = hf.claims<TaskRow>(taskOptions)
let stopping = false
process.on('disconnect', () => {
  stopping = true
})

/** So that pauses and kills also come between the claim and the work. */
let told = false
async function work(): Promise<void> {
  // Whoever started us may be done with us by now.
  if (!told && process.connected) process.send?.('working', () => undefined)
  told = true
  await pause(Math.random() * mostMs)
}

async function effects(tx: PoolClient, ids: readonly string[]): Promise<void> {
  await tx.query('INSERT INTO effect SELECT unnest($1::bigint[]), $2', [ids, process.pid])
}

async function finish(claims: readonly Claim<TaskRow>[]): Promise<void> {
  const ids = claims.map(({ row }) => row.id)
  await hf.transaction(async (tx) => {
    await effects(tx, ids)
    if (mode === 'unfenced') {
      // What most do: by id, and by the status, which is true again for the next owner.
      await tx.query(
        `UPDATE task SET status = 'done' WHERE id = ANY ($1::bigint[]) AND status = 'claimed'`,
        [ids],
      )
    } else await tasks.complete(tx, claims)
  })
}

/** One that is lost takes all others of its batch with it; those are done one by one. */
async function finishAll(claims: readonly Claim<TaskRow>[]): Promise<void> {
  try {
    await finish(claims)
  } catch (error) {
    if (!isHoldfastError(error, 'CLAIM_LOST') || claims.length === 1) return
    for (const claim of claims) await finish([claim]).catch(() => undefined)
  }
}

async function batches(): Promise<void> {
  const sweeper = setInterval(() => void tasks.recover().catch(() => undefined), sweepMs)
  while (!stopping) {
    try {
      const claims = await tasks.claim(batch)
      if (claims.length === 0) await pause(20)
      else {
        await work()
        await finishAll(claims)
      }
    } catch {
      // A connection that was ended under us: the claims are recovered like those of the dead.
      await pause(10)
    }
  }
  clearInterval(sweeper)
}

async function loop(): Promise<void> {
  const worker = await tasks.run({
    concurrency: batch,
    recoverEvery: sweepMs,
    poll: { min: 10, max: 50 },
    transactionHandler: async (tx, { id }) => {
      await work()
      await effects(tx, [id])
    },
  })
  while (!stopping) await pause(20)
  await worker.stop({ within: 1_000 })
}

await (mode === 'run' ? loop() : batches())
await pool.end()
