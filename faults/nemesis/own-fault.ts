import { setTimeout as pause } from 'node:timers/promises'
import type { SingleCluster } from '../cluster/single.ts'
import type { OwnCluster, RunnableCluster } from '../cluster/parts.ts'
import { rowsOf } from '../cluster/ask.ts'
import type { Fault } from '../core/model.ts'

/** A fault of servers that are processes of ours. */
export interface OwnFault<C extends RunnableCluster = OwnCluster> extends Fault<C> {
  /** Before anybody connects to the episode's database. */
  prepare?(adminUrl: string): Promise<void>
}

export type Stage<C extends RunnableCluster = OwnCluster> = Parameters<OwnFault<C>['strike']>[0]
export type SingleFault = OwnFault<SingleCluster>

/** As long as the fault lasts. */
export async function last({ random, say }: Stage, leastMs: number, mostMs: number): Promise<void> {
  const ms = random.integer(leastMs, mostMs)
  say(`for ${ms} ms`)
  await pause(ms)
}

/** A client's backend in the episode's database, rather one that is at work. */
export async function someBackend({ cluster, database, random }: Stage): Promise<number> {
  const rows = await rowsOf<{ pid: number }>(
    cluster.adminUrl('postgres'),
    `SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'
     ORDER BY (state <> 'idle') DESC, pid`,
    [database],
  )
  const row = rows[random.integer(0, Math.max(0, Math.ceil(rows.length / 2) - 1))]
  if (row === undefined) throw new Error('nobody is connected')
  return row.pid
}
