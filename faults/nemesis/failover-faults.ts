import { sendSignal } from '@holdfast/testkit'
import { rowsOf } from '../cluster/ask.ts'
import type { PairCluster } from '../cluster/pair.ts'
import { last, type OwnFault } from './own-fault.ts'

type PairFault = OwnFault<PairCluster>

const failover: PairFault = {
  name: 'failover',
  strike: async ({ cluster, say }) => await cluster.failOver(say),
}

/** The standby hears nothing for a while: commits wait, and are lost with the primary. */
const failoverBehind: PairFault = {
  name: 'failover_behind',
  async strike(stage) {
    stage.cluster.replication.stall()
    await last(stage, 50, 600)
    await stage.cluster.failOver(stage.say)
  },
}

/** The waits of commits are cancelled first: the server then says COMMIT, and a warning. */
const failoverCancelled: PairFault = {
  name: 'failover_cancelled',
  async strike(stage) {
    const { cluster, database, say } = stage
    cluster.replication.stall()
    await last(stage, 50, 300)
    say(`${await cancelSyncWaits(cluster, database)} waits cancelled`)
    // Time to ask again: what is there by now is lost all the same.
    await last(stage, 20, 300)
    await cluster.failOver(say)
  },
}

/** How many commits were made to stop waiting for the standby. */
export async function cancelSyncWaits(cluster: PairCluster, database: string): Promise<number> {
  const rows = await rowsOf(
    cluster.adminUrl('postgres'),
    `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
     WHERE datname = $1 AND wait_event = 'SyncRep'`,
    [database],
  )
  return rows.length
}

/**
 * The primary crashes while the standby hears nothing, and recovers: what nobody was told is visible then,
 * and lost with the failover that follows.
 */
const failoverAfterCrash: PairFault = {
  name: 'failover_after_crash',
  async strike(stage) {
    const { cluster, say } = stage
    cluster.replication.stall()
    await last(stage, 50, 300)
    await cluster.crash()
    say('recovered')
    await last(stage, 50, 400)
    await cluster.failOver(say)
  },
}

const killStandby: PairFault = {
  name: 'kill_standby',
  async strike(stage) {
    await stage.cluster.standby.kill()
    await last(stage, 0, 500)
    await stage.cluster.mend()
  },
}

const stopStandby: PairFault = {
  name: 'stop_standby',
  async strike(stage) {
    const pids = stage.cluster.standby.processes()
    for (const pid of pids) sendSignal(pid, 'SIGSTOP')
    try {
      await last(stage, 100, 800)
    } finally {
      for (const pid of pids) sendSignal(pid, 'SIGCONT')
    }
  },
}

export const failovers: readonly PairFault[] = [
  failover,
  failoverBehind,
  failoverCancelled,
  failoverAfterCrash,
]

/** What a standby meets; the primary stays. */
export const standbyFaults: readonly PairFault[] = [killStandby, stopStandby]
