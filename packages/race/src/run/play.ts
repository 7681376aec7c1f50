import type { Decision, FlowOutcome, Footprint, Note, Trouble } from '../core/model.ts'
import type { GatedConnection } from '../gate/gated-connection.ts'
import type { Control } from './control.ts'
import type { FlowIdentity } from './flow-identity.ts'
import { type FlowTimers, watchTimers } from './flow-timers.ts'
import type { FootprintReader } from './footprint-reader.ts'
import { createLane, type DraftStep, type Lane, type Return } from './lane.ts'
import type { Flow } from './options.ts'
import { createSignal, type Signal } from './signal.ts'
import { sharedConnections } from './shared-connections.ts'
import type { Stage } from './stage.ts'
import { createTransactionRecord, type TransactionRecord } from './transaction-record.ts'

/** What stays the same from run to run. */
export interface ScheduleSetting {
  readonly names: readonly string[]
  readonly flows: readonly Flow[]
  readonly stage: Stage
  readonly control: Control
  readonly reader: FootprintReader
  readonly isolation: Footprint['isolation']
  readonly split: boolean
  readonly victims: 'choose' | 'first'
  readonly steps: number
  readonly graceMs: number
  readonly hangMs: number
}

/** One flow in one run. */
export interface Performer {
  outcome: FlowOutcome | undefined
  /** When something of it was last seen; some time after that it is taken for idle. */
  seen: number
  idle: boolean
  readonly abort: AbortController
  readonly identity: FlowIdentity
  /** Resolves when its code has come to its end, which may be after the run. */
  performance: Promise<void> | undefined
}

/** Everything that one run is made of. */
export interface Play {
  readonly setting: ScheduleSetting
  readonly signal: Signal
  readonly timers: FlowTimers
  readonly performers: readonly Performer[]
  readonly lanes: Lane[]
  /** Statements that came back and are still to be recorded. */
  readonly returns: Return[]
  readonly steps: DraftStep[]
  readonly decisions: Decision[]
  readonly notes: Map<string, Note>
  /** Connections of flows that crashed. */
  readonly frozen: { readonly connection: GatedConnection; readonly flow: number }[]
  deadlocks: number
  trouble: Trouble | undefined
  /** Counts what was seen, so that one can tell whether anything was. */
  activity: number
  /** Questions about the server that were let pass. */
  quiet: number
  /** Since when lanes wait in a circle that the server is to open. */
  circleSince: number | undefined
  /** Something may have been released: who is blocked has to be asked again. */
  stale: boolean
}

export function createPlay(setting: ScheduleSetting): Play {
  return {
    setting,
    signal: createSignal(),
    timers: watchTimers(),
    performers: setting.names.map((_, flow) => ({
      outcome: undefined,
      seen: performance.now(),
      idle: false,
      abort: new AbortController(),
      identity: { flow, over: false },
      performance: undefined,
    })),
    lanes: [],
    returns: [],
    steps: [],
    decisions: [],
    notes: new Map(),
    frozen: [],
    deadlocks: 0,
    trouble: undefined,
    activity: 0,
    quiet: 0,
    stale: false,
    circleSince: undefined,
  }
}

/** Something of the flow was seen: it is not idle. */
export function seen(play: Play, flow: number): void {
  const performer = play.performers[flow]
  if (performer) {
    performer.seen = performance.now()
    performer.idle = false
  }
  play.activity += 1
  play.signal.notify()
}

export function note(play: Play, kind: Note['kind'], message: string): void {
  play.notes.set(message, { kind, message })
}

export function nameOf(play: Play, flow: number): string {
  return play.setting.names[flow] ?? `flow ${flow}`
}

// A session keeps its settings from run to run, so its record does too.
const records = new WeakMap<GatedConnection, TransactionRecord>()

/** The lane of a flow on this connection; lanes are counted in the order of their first unit. */
export function laneOf(play: Play, flow: number, connection: GatedConnection): Lane {
  const known = play.lanes.find((lane) => lane.connection === connection && lane.flow === flow)
  if (known) return known
  let record = records.get(connection)
  if (!record) {
    record = createTransactionRecord(play.setting.isolation)
    records.set(connection, record)
  }
  return addLane(play, flow, connection, record)
}

export function addLane(
  play: Play,
  flow: number,
  connection: GatedConnection | undefined,
  record: TransactionRecord,
): Lane {
  const place = play.lanes.filter((lane) => lane.flow === flow).length
  const lane = createLane(flow, place, connection, record)
  play.lanes.push(lane)
  return lane
}

/** The lane that has the connection in use at present, or used it last. */
export function userOf(play: Play, connection: GatedConnection): Lane | undefined {
  const users = play.lanes.filter((lane) => lane.connection === connection)
  return users.find(({ status }) => status !== 'idle') ?? users.at(-1)
}

/** All connections that take part: of the flows, and of pools that they share. */
export function connectionsOf(play: Play): GatedConnection[] {
  const { wings } = play.setting.stage
  return [...wings.flatMap((wing) => [...wing.connections]), ...sharedConnections]
}

/** Connections of one flow: its own, and shared ones that it has in use. */
export function connectionsOfFlow(play: Play, flow: number): GatedConnection[] {
  const { wings } = play.setting.stage
  const borrowed = [...sharedConnections].filter((connection) => {
    const user = userOf(play, connection)
    return user?.flow === flow && (connection.state !== 'I' || user.status !== 'idle')
  })
  return [...(wings[flow]?.connections ?? []), ...borrowed]
}

/** Whose session this is; undefined for one of nobody in the run. */
export function flowOfPid(play: Play, pid: number): number | undefined {
  const connection = connectionsOf(play).find((candidate) => candidate.pid === pid)
  if (!connection) return undefined
  const own = play.setting.stage.wings.findIndex((wing) => wing.connections.has(connection))
  return own === -1 ? userOf(play, connection)?.flow : own
}
