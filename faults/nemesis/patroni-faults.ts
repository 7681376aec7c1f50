import type { PatroniCluster, PrimaryLoss } from '../cluster/patroni.ts'
import type { OwnFault } from './own-fault.ts'

const names: Readonly<Record<string, PrimaryLoss>> = {
  crash_primary: 'crash',
  lose_machine: 'machine',
  lose_machine_behind: 'behind',
  orphan_primary: 'orphan',
  switch_over: 'switchover',
}

/** What Patroni is there for: each is one failover under load. */
export const patroniFaults: readonly OwnFault<PatroniCluster>[] = Object.entries(names).map(
  ([name, how]) => ({
    name,
    async strike({ cluster, say }) {
      const { from, to, promotedMs, settledMs } = await cluster.failover(how)
      say(`from ${from} to ${to} in ${promotedMs} ms, two servers again after ${settledMs} ms`)
    },
  }),
)
