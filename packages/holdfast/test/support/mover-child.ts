import { flushCompileCache } from 'node:module'
import pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createMoves } from '../../src/shards/index.ts'

// Whoever is killed writes no cache for the next one, unless now.
flushCompileCache()

/** A process that moves buckets, or goes on with a move, and stands still at a step, to be killed there. */
export interface MoverTask {
  readonly urls: Readonly<Record<string, string>>
  readonly standAt: string
  readonly buckets: readonly number[]
  readonly to: string
  /** Of a move to go on with, or to undo. */
  readonly id?: string | undefined
  readonly undo?: boolean
}

process.once('message', (task: MoverTask) => void run(task))
process.on('disconnect', () => process.exit(0))

async function run({ urls, standAt, buckets, to, id, undo }: MoverTask): Promise<void> {
  const primaries = Object.fromEntries(
    Object.entries(urls).map(([name, url]) => {
      const pool = new pg.Pool({ connectionString: url, max: 2 })
      pool.on('error', () => undefined)
      return [name, { driver: fromPg(pool), connection: url }]
    }),
  )
  const moves = createMoves(primaries, {
    onProgress: async (progress) => {
      if (progress.step !== standAt) return
      process.send?.(progress)
      await new Promise<never>(() => {})
    },
  })
  if (id === undefined) await moves.move({ buckets, to })
  else if (undo === true) await moves.undo(id)
  else await moves.resume(id)
  process.send?.({ step: 'over' })
}
