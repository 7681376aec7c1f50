import type { PgBouncer, PostgresServer } from '@holdfast/testkit'
import type { Cluster } from '../core/model.ts'
import type { CuttablePort } from './cuttable-port.ts'

/** A cluster of processes of this machine, with all that an episode needs to know about it. */
export interface RunnableCluster extends Cluster {
  readonly pooler: PgBouncer
  /** The ports that connections go through; the first is the way past the pooler. */
  readonly ports: readonly CuttablePort[]
  /** Starts what has ended and waits until it answers. Callers wait for each other. */
  mend(): Promise<void>
  /** What belongs to the cluster and not to an episode. */
  readonly ownSlots: readonly string[]
  /** The last lines of what the servers wrote. */
  logs(): Promise<string>
}

/** One whose servers can be broken one by one. */
export interface OwnCluster extends RunnableCluster {
  /** The primary of now. */
  readonly primary: PostgresServer
}
