/**
 * Several worker threads, each with a pool and a Holdfast of its own, want one key at the same moment. They go the way
 * they are told to, step by step: nothing here depends on who is faster. Prints what the counter has in the end, with
 * the guard and without.
 */
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createHoldfast, lockKey } from 'holdfast'
import { clients } from './clients.mjs'

const url = process.env.DATABASE_URL
const count = 4

/** A thread: reads, says so, is told to go on, writes. */
async function contend({ name, guarded }) {
  const { driver, run, close } = await clients.pg(url, 2)
  const hf = createHoldfast(driver)
  const told = Promise.withResolvers()
  parentPort.on('message', told.resolve)
  const body = async (tx) => {
    const [{ n }] = await run(tx, 'SELECT n FROM counter WHERE name = $1', [name])
    parentPort.postMessage('has read')
    await told.promise
    await run(tx, 'UPDATE counter SET n = $1 WHERE name = $2', [n + 1, name])
  }
  await (guarded ? hf.guard(lockKey('contend', name), body) : hf.transaction(body))
  await hf.close()
  await close()
  process.exit()
}

async function untilWaiting(look, wanted) {
  for (const ends = performance.now() + 20_000; performance.now() < ends; ) {
    const [{ n }] = await look(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    if (n === wanted) return
    await pause(10)
  }
  throw new Error('they never waited')
}

/** With the guard only one has read while all others wait; without it all have. */
async function contended(look, guarded) {
  const name = guarded ? 'guarded' : 'unguarded'
  await look('INSERT INTO counter VALUES ($1, 0)', [name])
  let reads = 0
  const allowed = guarded ? 1 : count
  const arrived = Promise.withResolvers()
  const threads = Array.from({ length: count }, () => {
    const thread = new Worker(new URL(import.meta.url), { workerData: { name, guarded } })
    thread.on('message', () => {
      reads += 1
      if (reads === allowed) arrived.resolve()
    })
    return thread
  })
  const ended = threads.map(
    (thread) =>
      new Promise((resolve, reject) => {
        thread.on('error', reject)
        thread.on('exit', resolve)
      }),
  )
  await Promise.race([arrived.promise, Promise.all(ended)])
  if (guarded) await untilWaiting(look, count - 1)
  const before = reads
  for (const thread of threads) thread.postMessage('go on')
  await Promise.all(ended)
  const [{ n }] = await look('SELECT n FROM counter WHERE name = $1', [name])
  return { before, n }
}

async function main() {
  const { run, root, close } = await clients.pg(url, 2)
  const look = (text, values) => run(root, text, values)
  await look('CREATE TABLE counter (name text PRIMARY KEY, n int NOT NULL)')
  const seen = { guarded: await contended(look, true), unguarded: await contended(look, false) }
  await close()
  process.stdout.write(`${JSON.stringify(seen)}\n`)
}

await (isMainThread ? main() : contend(workerData))
