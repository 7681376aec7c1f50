/** The program of a process that holds leases, or leads, and does not know that it is paused. */
import { setTimeout as after } from 'node:timers/promises'
import { isHoldfastError } from '../../packages/holdfast/src/errors.ts'
import { openLeaseStore } from './lease-store.ts'

export interface HoldTask {
  readonly kind: 'hold'
  readonly name: string
  readonly ttlMs: number
  /** Without it this is the control. */
  readonly guarded: boolean
}

export interface LeadTask {
  readonly kind: 'lead'
  readonly name: string
  readonly ttlMs: number
  readonly bySession: boolean
}

export type HolderNews =
  | { readonly kind: 'ready' }
  | { readonly kind: 'has'; readonly token: string }
  /** A guarded write was refused, after so many that were not. */
  | { readonly kind: 'refused'; readonly writes: number }
  | { readonly kind: 'enough'; readonly writes: number }
  | { readonly kind: 'trouble'; readonly what: string }

const tell = (news: HolderNews): void => void process.send?.(news)
const [url = ''] = process.argv.slice(2)
const store = await openLeaseStore(url, 4)
const hf = store.open()
let enough = new AbortController()

async function hold({ name, ttlMs, guarded }: HoldTask): Promise<void> {
  const lease = await hf.leases.acquire(name, { ttl: ttlMs, renew: false })
  tell({ kind: 'has', token: String(lease.token) })
  let writes = 0
  // It does not look at the signal: what refuses it is to be the fence alone.
  while (!enough.signal.aborted) {
    try {
      await hf.transaction(async (tx) => {
        if (guarded) await lease.guard(tx)
        await store.write(tx, name, lease.token)
      })
      writes += 1
      // So that it can be stopped between two writes as well as inside of one.
      await after(3)
    } catch (error) {
      if (!isHoldfastError(error, 'LEASE_LOST')) throw error
      tell({ kind: 'refused', writes })
      return
    }
  }
  tell({ kind: 'enough', writes })
}

async function lead({ name, ttlMs, bySession }: LeadTask): Promise<void> {
  const options = { name, ttl: ttlMs }
  const leader = bySession ? store.leaderBySession?.(options) : hf.leader(options)
  await leader?.run(
    async (term) => {
      tell({ kind: 'has', token: String(term.token) })
      await new Promise((resolve) => {
        term.signal.addEventListener('abort', resolve)
      })
    },
    { signal: enough.signal },
  )
  tell({ kind: 'enough', writes: 0 })
}

process.on('message', (message: HoldTask | LeadTask | 'enough') => {
  if (message === 'enough') {
    enough.abort()
    return
  }
  enough = new AbortController()
  const working = message.kind === 'hold' ? hold(message) : lead(message)
  working.catch((error: unknown) => tell({ kind: 'trouble', what: String(error) }))
})
process.on('disconnect', () => process.exit(0))
tell({ kind: 'ready' })
