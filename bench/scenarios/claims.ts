import { startPostgres } from '@holdfast/testkit'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { bareClaims } from '../claims/bare-claims.ts'
import { burnDown } from '../claims/burn-down.ts'
import { createTasks, refill, tasksOptions } from '../claims/claims-ground.ts'
import { recoveryTimes } from '../claims/recovery.ts'
import type { BenchScenario } from '../harness/bench-scenario.ts'
import {
  type Comparison,
  compare,
  type Contest,
  type Effort,
  type Side,
} from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'
import { openPool } from '../harness/open-pool.ts'
import { pgbenchBinary } from '../harness/pgbench.ts'

/** Connections of ours, and clients of pgbench. */
const connections = 8
/** Handlers of a process: many at batch 1, which then share statements. */
const callersOf = (batch: number): number => (batch === 1 ? 64 : connections)

interface Plan {
  readonly effort: Effort
  /** Ready before each slice: more than it can use up. */
  readonly ready: number
  readonly jobs: number
  readonly rounds: number
}

const full: Plan = {
  effort: { rounds: 16, sliceMs: 2_000 },
  ready: 200_000,
  jobs: 20_000,
  rounds: 5,
}
const quick: Plan = {
  effort: { rounds: 4, sliceMs: 500, warmUps: 0 },
  ready: 50_000,
  jobs: 2_000,
  rounds: 1,
}

export const claims: BenchScenario = {
  about: 'claiming and completing rows against the same SQL without us, and queues side by side',
  method:
    'Server and clients on one machine, fsync on, shared_buffers 256MB. Slices of both sides in turn, the side that goes ' +
    'first alternating; one ratio per round; the median of the rounds is reported with p10 and p90. bare: pgbench, prepared, ' +
    `sends the very statements of the room, claim then complete, on ${connections} connections; each client’s ` +
    `first transaction, which plans, is left out. ours: one process on ${connections} connections, ${callersOf(1)} callers at batch 1 and ${callersOf(100)} at batch 100, prepared by the driver; each claims, then ` +
    'completes what it got. Callers at the same moment share a statement, as they do in an application (claim1_vs_bare); in ' +
    'claim1_apart_vs_bare each has claims of its own, and nothing is shared. Before every slice the table is filled again ' +
    'and vacuumed. Queues: no-op jobs that wait when the worker starts, counted from the first one handled to the last; ' +
    'each has its own database and the same concurrency and connections; pg-boss fetches and completes in batches and goes on ' +
    'while they are full; graphile-worker as it is, and with its local queue of 500 and batched completion.',
  async run({ quick: short, progress }) {
    const plan = short ? quick : full
    progress('starting PostgreSQL')
    await using server = await startPostgres({
      settings: {
        fsync: 'on',
        max_connections: '100',
        shared_buffers: '256MB',
        max_wal_size: '4GB',
      },
    })
    const meter = meterOf({ postmaster: server.pid })
    const comparisons: Comparison[] = []
    const binary = pgbenchBinary()
    if (binary === undefined) progress('no pgbench here: the comparisons with it are left out')
    else {
      const url = await server.createDatabase('claims')
      for (const table of ['ours', 'apart', 'bare']) await createTasks(url, table)
      const pool = await openPool(url, connections)
      // Also if something fails, so that its error is the one that is seen.
      await using _pool = { [Symbol.asyncDispose]: async () => await pool.end() }
      const run = async (contest: Contest): Promise<void> => {
        comparisons.push(...(await compare(contest, plan.effort, progress, meter)))
      }
      for (const [batch, shared] of [
        [1, true],
        [100, true],
        [1, false],
      ] as const) {
        await run({
          name: shared ? `claim${batch}_vs_bare` : 'claim1_apart_vs_bare',
          ...(shared ? { bar: 0.9 } : {}),
          workers: callersOf(batch),
          measured: oursSide({ url, pool, batch, shared, ready: plan.ready }),
          baseline: bareClaims(binary, { url, table: 'bare', batch, clients: connections }),
        })
      }
    }
    const facts = [await burnDown(server, plan, progress)]
    // Takes as long as leases do.
    if (!short) facts.push(await recoveryTimes(server, progress))
    return { comparisons, facts }
  },
}

/** Each caller claims and completes, over and over. */
function oursSide(task: {
  readonly url: string
  readonly pool: Awaited<ReturnType<typeof openPool>>
  readonly batch: number
  readonly shared: boolean
  readonly ready: number
}): Side {
  const { url, pool, batch, shared, ready } = task
  const table = shared ? 'ours' : 'apart'
  const rooms = Array.from({ length: shared ? 1 : callersOf(batch) }, () =>
    createHoldfast(fromPg(pool)).claims(tasksOptions(table)),
  )
  return {
    label: `${callersOf(batch)} callers, ${batch} rows a claim, ${shared ? 'sharing statements' : 'each by itself'}`,
    async scene() {
      await refill(url, table, ready)
      return async () => {}
    },
    async operation(worker) {
      const room = rooms[worker % rooms.length] as (typeof rooms)[number]
      const mine = await room.claim(batch)
      if (mine.length < batch) throw new Error('the table is empty: more rows have to be ready')
      const { lost } = await room.complete(mine)
      if (lost.length > 0) throw new Error('a claim was lost')
    },
  }
}
