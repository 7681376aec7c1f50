import { setTimeout as after } from 'node:timers/promises'
import { waitUntil } from '@holdfast/testkit'
import { startEngine } from '../engines/engine.ts'
import { type Budget, rounds, seconds as lasting } from '../harness/budget.ts'
import { randomFor } from '../harness/random.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { HolderProcess } from './holder-process.ts'
import { handOvers } from './lease-hand-overs.ts'
import { type Fence, playOrder } from './lease-orders.ts'
import { type LeaseStore, openLeaseStore } from './lease-store.ts'

const pausedRounds = 100
const orderRounds = 900
/** Rounds of chosen orders that are played at once. */
const together = 12
const ttlMs = 120
/** Of `--seconds`; the rest is for starting, for the controls and for hand-overs. */
const [pausedShare, orderShare] = [0.25, 0.35]

export const leases: StressScenario = {
  about: 'holders paused past their lease while others take over, and hand-over of leadership',
  engines: ['postgres', 'mariadb', 'mysql'],
  async run({ engine, seconds, seed, progress }) {
    progress(`starting ${engine}`)
    await using server = await startEngine(engine)
    const url = await server.createDatabase('leases')
    const store = await openLeaseStore(url, 2 * together)
    await store.prepare()
    try {
      const budgets = {
        paused: seconds === undefined ? rounds(pausedRounds) : lasting(seconds * pausedShare),
        orders: seconds === undefined ? rounds(orderRounds) : lasting(seconds * orderShare),
      }
      const paused = await pause(store, url, seed, 'paused', budgets.paused, true, progress)
      progress('chosen orders')
      const orders = await play(store, 'orders', seed, budgets.orders, 'guard')
      const violations = [...paused.violations, ...orders.violations]
      const stale = await store.staleWrites()
      if (stale > 0) violations.push(`${stale} writes came after those of a later holder`)

      progress('controls')
      await store.forgetWrites()
      await pause(store, url, seed, 'unguarded', rounds(1), false, progress)
      const unguarded = await store.staleWrites()
      await store.forgetWrites()
      await play(store, 'none', seed, rounds(24), 'none')
      const none = await store.staleWrites()
      await store.forgetWrites()
      await play(store, 'look', seed, rounds(48), 'look')
      const look = await store.staleWrites()

      const handOverNotes = await handOvers(
        url,
        seconds === undefined ? 5 : 1,
        store.leaderBySession === undefined ? ['by lease'] : ['by lease', 'by session'],
        progress,
      )
      return {
        operations: paused.rounds + orders.rounds,
        violations,
        controls: {
          no_fence: unguarded > 0 && none > 0 ? 'caught' : 'missed',
          look_without_lock: look > 0 ? 'caught' : 'missed',
        },
        notes: [
          `processes stopped past their lease: ${paused.refused} of ${paused.rounds} stale writes refused; ` +
            `in ${paused.waited} rounds the process stood still inside a guarded transaction, and the ` +
            'take-over waited for it',
          `chosen orders: ${orders.refused} of ${orders.rounds} stale writes refused`,
          `no_fence: ${unguarded} stale writes of a process that was stopped, ${none} in 24 chosen orders`,
          `look_without_lock: ${look} stale writes in 48 chosen orders`,
          ...handOverNotes,
        ],
      }
    } finally {
      await store[Symbol.asyncDispose]()
    }
  },
}

interface Refusals {
  readonly rounds: number
  readonly refused: number
  readonly violations: readonly string[]
}

/** Real processes, really stopped, wherever they happen to be. */
async function pause(
  store: LeaseStore<unknown>,
  url: string,
  seed: number,
  label: string,
  budget: Budget,
  guarded: boolean,
  progress: (text: string) => void,
): Promise<Refusals & { waited: number }> {
  const hf = store.open()
  const violations: string[] = []
  let [round, refused, waited] = [0, 0, 0]
  await using holder = await HolderProcess.start(url)
  for (; budget.allows(round); round += 1) {
    const name = `${label}-${round}`
    holder.send({ kind: 'hold', name, ttlMs, guarded })
    await holder.hears('has')
    // At once, or somewhere in the middle of its writes.
    await after(Math.max(0, randomFor(seed, round).integer(-30, 15)))
    holder.pause()
    await waitUntil('its lease has expired', async () => {
      return (await hf.leases.read(name))?.state === 'free' || undefined
    })
    let next = await hf.leases.tryAcquire(name, { ttl: '1 min', renew: false })
    if (next === undefined) {
      // It stands inside a guarded transaction, which comes first.
      waited += 1
      holder.resume()
      next = await hf.leases.acquire(name, { ttl: '1 min', renew: false, retryEvery: 5 })
    }
    const { token } = next
    await hf.transaction(async (tx) => await store.write(tx, name, token))
    holder.resume()
    if (guarded) {
      const news = await holder.hears('refused', 'trouble')
      if (news.kind === 'refused') refused += 1
      else violations.push(`${name}: ${news.what}`)
    } else {
      await waitUntil('it writes again', async () => (await store.staleWrites()) > 0 || undefined)
      holder.send('enough')
      await holder.hears('enough')
    }
    if (round % 20 === 19) progress(`stopped processes: ${round + 1} rounds`)
  }
  return { rounds: round, refused, waited, violations }
}

/** Orders that a seed chooses, several at once, each about a lease of its own. */
async function play(
  store: LeaseStore<unknown>,
  label: string,
  seed: number,
  budget: Budget,
  fence: Fence,
): Promise<Refusals> {
  const [holder, other] = [store.open(), store.open()]
  const violations: string[] = []
  let round = 0
  const player = async (): Promise<void> => {
    while (budget.allows(round)) {
      const number = round
      round += 1
      const random = randomFor(seed, number)
      const wrong = await playOrder({
        holder,
        other,
        store,
        name: `${label}-${number}`,
        random,
        fence,
      })
      if (wrong !== undefined) violations.push(wrong)
    }
  }
  await Promise.all(Array.from({ length: together }, player))
  return { rounds: round, refused: round - violations.length, violations }
}
