import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'

/** A candidate in a process of its own, which can be killed and paused. */
export interface LeaderTask {
  /** Where its work is done: may lead through a pooler. */
  readonly url: string
  /** Where its session is, if it leads by one. */
  readonly sessionUrl: string | undefined
  readonly name: string
  readonly ttlMs: number
  readonly retryMs: number
  /** Without it this is the control. */
  readonly guarded: boolean
}

export type LeaderNews =
  | { readonly kind: 'leads'; readonly token: string; readonly at: number }
  | { readonly kind: 'ended' }
  | { readonly kind: 'stopped' }

const stop = new AbortController()
const tell = (news: LeaderNews): void => void process.send?.(news)

process.on('disconnect', () => process.exit(0))
process.on('message', (message) => {
  if (message === 'stop') stop.abort()
  else void run(message as LeaderTask)
})

async function run(task: LeaderTask): Promise<void> {
  const { url, sessionUrl, name, ttlMs, retryMs, guarded } = task
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  pool.on('error', () => undefined)
  const direct = new pg.Pool({ connectionString: sessionUrl ?? url, max: 1 })
  direct.on('error', () => undefined)
  const hf = createHoldfast(fromPg(pool))
  const leader = hf.leader({
    name,
    ttl: ttlMs,
    retryEvery: retryMs,
    ...(sessionUrl === undefined ? {} : { session: fromPg(direct) }),
  })
  await leader.run(
    async (term) => {
      tell({ kind: 'leads', token: String(term.token), at: Date.now() })
      try {
        // The control is an application that believes what it was told when it was elected.
        while (guarded ? !term.signal.aborted : !stop.signal.aborted) {
          await hf
            .transaction(async (tx) => {
              if (guarded) await term.guard(tx)
              await tx.query('INSERT INTO written (lease, token) VALUES ($1, $2)', [
                name,
                String(term.token),
              ])
            })
            .catch(() => undefined)
          await pause(5)
        }
      } finally {
        tell({ kind: 'ended' })
      }
    },
    { signal: stop.signal },
  )
  await Promise.all([pool.end(), direct.end()])
  tell({ kind: 'stopped' })
  process.disconnect()
}
