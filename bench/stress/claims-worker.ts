/** One process that works on tasks until it is told to stop, or killed; see claims-attack.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Claim } from '../../packages/holdfast/src/entries/claims.ts'
import { isHoldfastError } from '../../packages/holdfast/src/errors.ts'
import { openClaimsStore } from './claims-store.ts'
import { batch, sweepMs, type TaskRow } from './claims-table.ts'

/** How a process works: by the loop of ours, batch by batch, or without looking at the token. */
export type WorkerMode = 'run' | 'batch' | 'unfenced'

const [url = '', mode = 'batch'] = process.argv.slice(2)
/** How long the work on a batch takes. */
const mostMs = 40
/** Handlers that keep a connection leave some of these to heartbeats. */
const connections = 8
const store = await openClaimsStore(url, connections)
const { claims: tasks } = store
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

async function finish(claims: readonly Claim<TaskRow>[]): Promise<void> {
  const ids = claims.map(({ row }) => row.id)
  await store.transaction(async (tx) => {
    await store.effects(tx, ids)
    if (mode === 'unfenced') await store.finishUnfenced(tx, ids)
    else await tasks.complete(tx, claims)
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
    // No more than leave a connection: not every client tells how many it has.
    concurrency: connections - 1,
    recoverEvery: sweepMs,
    poll: { min: 10, max: 50 },
    transactionHandler: async (tx, { id }) => {
      await work()
      await store.effects(tx, [id])
    },
  })
  while (!stopping) await pause(20)
  await worker.stop({ within: 1_000 })
}

await (mode === 'run' ? loop() : batches())
await store[Symbol.asyncDispose]()
