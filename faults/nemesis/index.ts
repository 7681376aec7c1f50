import type { PairCluster } from '../cluster/pair.ts'
import { connectionFaults } from './connection-faults.ts'
import { failovers, standbyFaults } from './failover-faults.ts'
import type { OwnFault, SingleFault } from './own-fault.ts'
import { processFaults } from './process-faults.ts'
import { diskFull, resourceFaults } from './resource-faults.ts'

/** Everything that one server with its pooler and its clients can meet. */
export const singleFaults: readonly SingleFault[] = [
  ...processFaults,
  ...connectionFaults,
  ...resourceFaults,
  diskFull,
]

/** What ends with another primary. */
export const pairFaults: readonly OwnFault<PairCluster>[] = failovers

const beside: ReadonlySet<string> = new Set([
  'kill_application',
  'stop_application',
  'kill_backend',
  'stop_backend',
  'kill_pgbouncer',
  'stop_pgbouncer',
])

/** What happens beside a failover; what ends the primary itself is left to that. */
export const pairCompanions: readonly OwnFault<PairCluster>[] = [
  ...processFaults.filter(({ name }) => beside.has(name)),
  ...connectionFaults,
  ...resourceFaults,
  ...standbyFaults,
]
