import type { Moment } from './history.ts'
import type { LockFault } from './lock-fault.ts'

/** The names of what can go wrong at PostgreSQL's isolation levels. */
export type AnomalyName =
  | 'check-then-insert'
  | 'lost update'
  | 'double claim'
  | 'write skew'
  | 'stale check'
  | 'read skew'
  | 'non-repeatable read'
  | 'intermediate read'
  | 'deadlock'
  | 'unhandled serialization failure'
  | 'unhandled duplicate'
  | 'unhandled error'
  | 'lost after crash'
  | 'lost answer'
  | 'unknown'

/** What was recognised in a failing run, and the steps that show it. */
export interface Anomaly {
  readonly name: AnomalyName
  /** The read that was no longer true when it was acted upon, and who read it. */
  readonly read?: Moment
  /** The commit that made it untrue. */
  readonly commit?: Moment
  /** An earlier commit of the same flow, which the read did see. */
  readonly seen?: Moment
  /** What was done on the strength of the read. */
  readonly write?: Moment
  /** The same of the other side, where it did the same. */
  readonly otherRead?: Moment
  readonly otherWrite?: Moment
  /** Check and write were one statement. */
  readonly oneStatement?: boolean
  /** There was a lock, and it did not help. */
  readonly lockFault?: LockFault
  /** Steps that wait for each other, in the order of the circle. */
  readonly circle?: readonly Moment[]
  /** The step at which the flow was cut, or whose error nobody handled. */
  readonly hit?: Moment
}
