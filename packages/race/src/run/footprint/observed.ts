import type { Settlement } from '../../gate/unit.ts'
import type { Held } from './held.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** A unit that came to rest, with what is known about its session. */
export interface Observed {
  readonly settlement: Settlement
  readonly pid: number
  /** The session is still there, and its locks are to be seen. */
  readonly open: boolean
  readonly record: TransactionRecord
  /** See `SessionFacts.isPlain`. */
  readonly isPlain: boolean
  /** What it waited for before it went on, if it did. */
  readonly waitedFor: Held | undefined
}
