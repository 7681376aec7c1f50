import type { Choice, Step } from '../../core/model.ts'
import type { GatedConnection } from '../../gate/gated-connection.ts'
import type { Settlement, Unit } from '../../gate/unit.ts'
import type { Held } from '../footprint/held.ts'
import type { TransactionRecord } from '../footprint/transaction-record.ts'

/** A step that is being recorded: complete once its statement has come to rest. */
export type DraftStep = { -readonly [Key in keyof Step]: Step[Key] }

/** What one connection of one flow is doing in this run. */
export interface Lane {
  readonly flow: number
  readonly lane: number
  /** Absent for a place that the flow marked itself (`cx.step`). */
  readonly connection: GatedConnection | undefined
  readonly record: TransactionRecord
  status:
    | 'idle'
    /** A unit waits at the gate. */
    | 'parked'
    /** Let pass and not back yet. */
    | 'running'
    /** Executed, and it is not decided yet whether the commit is a step of its own. */
    | 'settled'
    /** Waits for a lock of another session of this run. */
    | 'blocked'
    /** Executed and not committed. */
    | 'held'
    | 'closed'
  unit: Unit | undefined
  /** Units that it let pass so far. */
  units: number
  /** Its commit is under way as part of the step that executed it. */
  committing: boolean
  draft: DraftStep | undefined
  choice: Choice | undefined
  /** It was chosen to die of a deadlock. */
  victim: boolean
  /** Sessions that it waits for, since it is blocked. */
  blockers: readonly number[]
  waitedFor: Held | undefined
  /** When it was let pass, and since when only sessions of others are in its way. */
  since: number
  foreignSince: number | undefined
  /** Goes on from a place that the flow marked. */
  resume: (() => void) | undefined
}

/** A statement that came back, and is still to be recorded. */
export interface Return {
  readonly lane: Lane
  readonly settlement: Settlement
}

export function createLane(
  flow: number,
  lane: number,
  connection: GatedConnection | undefined,
  record: TransactionRecord,
): Lane {
  return {
    flow,
    lane,
    connection,
    record,
    status: 'idle',
    unit: undefined,
    units: 0,
    committing: false,
    victim: false,
    draft: undefined,
    choice: undefined,
    blockers: [],
    waitedFor: undefined,
    since: 0,
    foreignSince: undefined,
    resume: undefined,
  }
}

/** A lane that waits in its flow's behalf, so that the flow is at rest. */
export function isOccupied(lane: Lane): boolean {
  return lane.status !== 'idle' && lane.status !== 'closed'
}
