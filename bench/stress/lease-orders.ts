import { waitUntil } from '@holdfast/testkit'
import { isHoldfastError } from '../../packages/holdfast/src/errors.ts'
import type { Lease } from '../../packages/holdfast/src/entries/leases.ts'
import type { Random } from '../harness/random.ts'
import type { LeaseFace, LeaseStore } from './lease-store.ts'

/** How the protected write is fenced: as it should be, not at all, or by a look without a lock. */
export type Fence = 'guard' | 'none' | 'look'

/** The holder's transaction; whoever takes over comes before one of its steps, or before COMMIT. */
const transactions = [
  ['check', 'write'],
  ['write', 'check'],
] as const

const ttlMs = 100

interface Round {
  /** Two applications: neither is inside the other's transaction. */
  readonly holder: LeaseFace<unknown>
  readonly other: LeaseFace<unknown>
  readonly store: LeaseStore<unknown>
  readonly name: string
  readonly random: Random
  readonly fence: Fence
}

/**
 * One round in a chosen order: a lease expires while its holder is about to write, in the middle of
 * it or about to commit, and somebody else wants to take over and write. It ends with a write of the
 * old holder's that has to be refused. Gives what went wrong.
 */
export async function playOrder(round: Round): Promise<string | undefined> {
  const { holder, store, name, random } = round
  const steps = transactions[random.integer(0, 1)] ?? transactions[0]
  const place = random.integer(0, steps.length)
  const inTime = steps.indexOf('check') >= place
  const lease = await holder.leases.acquire(name, { ttl: ttlMs, renew: false })
  const successor = new Successor(round)
  const where = `${name}, ${steps.join(' and ')}, taken over before step ${place + 1}`

  let reached = false
  const outcome = await attempt(holder, async (tx) => {
    for (const [at, step] of [...steps, 'commit'].entries()) {
      if (at === place) {
        reached = true
        await (inTime ? successor.takes() : successor.isKeptOut())
      }
      if (step === 'check') await check(store, tx, lease, round.fence)
      if (step === 'write') await store.write(tx, name, lease.token)
    }
  })
  // On a machine so slow that the lease was over before anybody came, the check is right; the round shows nothing.
  if (!reached && outcome === 'refused' && lease.remainingMs() <= 0) return await playOrder(round)
  if (successor.cameIn && !inTime) return `${where}: past the check, and not kept out`
  if (outcome !== (inTime ? 'refused' : 'done')) return `${where}: ${outcome}`
  if (inTime) return undefined
  // Who was past the check came first. Now it is somebody else's turn, and the next write is stale.
  await successor.takes()
  const late = await attempt(holder, async (tx) => {
    await check(store, tx, lease, round.fence)
    await store.write(tx, name, lease.token)
  })
  return late === 'refused' ? undefined : `${where}: a later write was ${late}`
}

/** Takes the lease over as soon as it has expired by the server's clock, and writes at once. */
class Successor {
  readonly #round: Round
  cameIn = false

  constructor(round: Round) {
    this.#round = round
  }

  async takes(): Promise<void> {
    const free = async (): Promise<true | undefined> => ((await this.#comesIn()) ? true : undefined)
    await waitUntil('the lease is free', free, { everyMs: 10 })
  }

  async isKeptOut(): Promise<void> {
    const { other, name } = this.#round
    await waitUntil('the lease has expired', async () => {
      return (await other.leases.read(name))?.state === 'free' || undefined
    })
    this.cameIn = await this.#comesIn()
  }

  async #comesIn(): Promise<boolean> {
    const { other, store, name } = this.#round
    const lease = await other.leases.tryAcquire(name, { ttl: '1 min', renew: false })
    if (lease === undefined) return false
    await other.transaction(async (tx) => {
      await lease.guard(tx)
      await store.write(tx, name, lease.token)
    })
    return true
  }
}

class StaleLook extends Error {}

async function attempt(
  hf: LeaseFace<unknown>,
  body: (tx: unknown) => Promise<void>,
): Promise<'done' | 'refused'> {
  try {
    await hf.transaction(body)
    return 'done'
  } catch (error) {
    if (isHoldfastError(error, 'LEASE_LOST') || error instanceof StaleLook) return 'refused'
    throw error
  }
}

async function check(
  store: LeaseStore<unknown>,
  tx: unknown,
  lease: Lease<unknown>,
  fence: Fence,
): Promise<void> {
  if (fence === 'guard') await lease.guard(tx)
  if (fence !== 'look') return
  if ((await store.lookAt(tx, lease.name)) === String(lease.token)) return
  throw new StaleLook('the token is not ours')
}
