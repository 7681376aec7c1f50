/** Locks of a shop that are used for minutes, by three clients as by three processes, so that the charts have something to show. */
import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'

type Hf = ReturnType<typeof createHoldfast<pg.PoolClient>>

/** When the payment service is slow, a part of the whole. */
const rush = { from: 0.5, to: 0.8 } as const
const clients = 3
const callers = 6

/** Resolves after so many minutes of use. Nothing of what is recorded is made up. */
export async function useLocks(url: string, minutes: number): Promise<void> {
  const started = performance.now()
  const part = (): number => (performance.now() - started) / (minutes * 60_000)
  await Promise.all(Array.from({ length: clients }, () => useAsOneProcess(url, part)))
}

async function useAsOneProcess(url: string, part: () => number): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: callers, application_name: 'shop-web' })
  const hf = createHoldfast(fromPg(pool), { locks: { watch: false } })
  const recording = await hf.observe.record({ every: '1 s' })
  const call = async (caller: number): Promise<void> => {
    while (part() < 1) {
      await (caller % 3 === 0 ? fillCart(hf) : payOrder(hf, part()))
      await pause(randomInt(40, 160))
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  await recording.stop()
  await hf.close()
  await pool.end()
}

async function fillCart(hf: Hf): Promise<void> {
  await hf.guard(lockKey('cart', randomInt(20, 30)), async (tx) => {
    await tx.query('SELECT pg_sleep($1)', [randomInt(1, 6) / 1_000])
  })
}

/** In the rush the payment service answers late, under the lock: others wait, and some give up. */
async function payOrder(hf: Hf, part: number): Promise<void> {
  const isRush = part > rush.from && part < rush.to
  const key = lockKey('order', randomInt(1_000, isRush ? 1_003 : 1_020))
  const workMs = isRush ? randomInt(60, 420) : randomInt(2, 15)
  try {
    if (randomInt(8) === 0) {
      await hf.transaction(async (tx) => await hf.locks.tryAcquire(tx, key))
    } else {
      await hf.guard(key, () => pause(workMs), { wait: '600 ms' })
    }
  } catch (error) {
    if (!isHoldfastError(error, 'LOCK_TIMEOUT')) throw error
  }
}
