import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type PairCluster, startPair } from '../cluster/pair.ts'
import type { Seed, Violation } from '../core/model.ts'
import { openSpares } from '../crew/spares.ts'
import type { OwnFault } from '../nemesis/own-fault.ts'
import { runEpisode } from '../run/episode.ts'

/** How far the standby is behind when the primary is lost; nobody waits for it. */
const behindMs = 500

const loseBehind: OwnFault<PairCluster> = {
  name: 'failover_behind',
  async strike({ cluster, say }) {
    cluster.replication.stall()
    await pause(behindMs)
    await cluster.failOver(say)
  },
}

/** The whole harness with one thing changed: commits do not wait for the standby. What does it report? */
export async function asyncReplication(folder: string, seed: Seed): Promise<readonly Violation[]> {
  await using cluster = await startPair({ synchronous: false })
  await using spares = openSpares(1)
  const { result } = await runEpisode({
    cluster,
    spares,
    number: 1,
    folder: join(folder, 'async_replication'),
    plan: { seed, lanes: [[{ fault: loseBehind, afterMs: 500, seed }]] },
  })
  return result.violations
}
