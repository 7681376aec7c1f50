import type { Decision, FlowOutcome, Footprint, Note, Trouble } from '../../core/model.ts'
import type { GatedConnection } from '../../gate/gated-connection.ts'
import type { Control } from '../connection/control.ts'
import type { FlowIdentity } from '../connection/flow-identity.ts'
import { type Elsewhere, watchElsewhere } from '../connection/elsewhere.ts'
import type { FootprintReader } from '../footprint/footprint-reader.ts'
import { createLane, type DraftStep, type Lane, type Return } from './lane.ts'
import type { Flow } from '../options.ts'
import type { Classify } from '../answer/said.ts'
import { createSignal, type Signal } from './signal.ts'
import { sharedConnections } from '../connection/shared-connections.ts'
import { levelNamed } from '../statement/session-setting.ts'
import type { Stage } from '../connection/stage.ts'
import { createTransactionRecord, type TransactionRecord } from '../footprint/transaction-record.ts'

/** What stays the same from run to run. */
export interface ScheduleSetting {
  readonly names: readonly string[]
  readonly flows: readonly Flow[]
  readonly stage: Stage
  readonly control: Control
  readonly reader: FootprintReader
  readonly isolation: Footprint['isolation']
  readonly split: boolean
  /** What answers and errors say, if the user knows it better. */
  readonly classify: Classify | undefined
  readonly victims: 'choose' | 'first'
  readonly steps: number
  readonly graceMs: number
  readonly hangMs: number
  /** Places at which a flow was seen to wait for another one in the process; they stay the same from run to run. */
  readonly meetings: Set<string>
}

/** One flow in one run. */
export interface Performer {
  outcome: FlowOutcome | undefined
  /** When something of it was last seen; some time after that it is taken for idle. */
  seen: number
  /** When it was last seen to wait for something that is known. */
  waited: number
  /** Since when it waits for something that is not known: for another flow, or for nobody knows what. */
  idle: { readonly since: number; readonly place: string; readonly what: string } | undefined
  readonly abort: AbortController
  readonly identity: FlowIdentity
  /** Resolves when its code has come to its end, which may be after the run. */
  performance: Promise<void> | undefined
}

/** Everything that one run is made of. */
export interface Play {
  readonly setting: ScheduleSetting
  readonly signal: Signal
  readonly elsewhere: Elsewhere
  /** Flows that have not begun, in the order in which they will. */
  readonly waiting: number[]
  /** One flow after the other: whoever is under way is alone, and can wait for nobody. */
  readonly serial: boolean
  readonly performers: readonly Performer[]
  readonly lanes: Lane[]
  /** Statements that came back and are still to be recorded. */
  readonly returns: Return[]
  readonly steps: DraftStep[]
  readonly decisions: Decision[]
  readonly notes: Map<string, Note>
  /** Connections of flows that crashed. */
  readonly frozen: { readonly connection: GatedConnection; readonly flow: number }[]
  /** Connections in whose session code may have left something. */
  readonly leaving: Set<GatedConnection>
  deadlocks: number
  /** What happened that no schedule controls. */
  uncontrolled: string | undefined
  trouble: Trouble | undefined
  /** What rejects the exploration: something that was given to it threw. */
  failure: Error | undefined
  /** Counts what was seen, so that one can tell whether anything was. */
  activity: number
  /** Questions about the server that were let pass. */
  quiet: number
  /** Since when lanes wait in a circle that the server is to open. */
  circleSince: number | undefined
  /** Something may have been released: who is blocked has to be asked again. */
  stale: boolean
}

export function createPlay(
  setting: ScheduleSetting,
  order: readonly number[],
  serial: boolean,
): Play {
  return {
    setting,
    signal: createSignal(),
    elsewhere: watchElsewhere(),
    waiting: [...order],
    serial,
    performers: setting.names.map((_, flow) => ({
      outcome: undefined,
      seen: performance.now(),
      waited: 0,
      idle: undefined,
      abort: new AbortController(),
      identity: { flow, over: false, ended: false },
      performance: undefined,
    })),
    lanes: [],
    returns: [],
    steps: [],
    decisions: [],
    notes: new Map(),
    frozen: [],
    leaving: new Set(),
    deadlocks: 0,
    uncontrolled: undefined,
    trouble: undefined,
    failure: undefined,
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
    wakened(play, performer)
    performer.seen = performance.now()
    performer.idle = undefined
  }
  play.activity += 1
  play.signal.notify()
}

/** Who comes back right after another flow did something waited for that; anything else came from outside. */
function wakened(play: Play, { idle, identity, outcome }: Performer): void {
  if (!idle || outcome) return
  const others = play.performers.filter((one) => one.identity !== identity && one.seen > idle.since)
  const last = Math.max(...others.map((one) => one.seen))
  if (performance.now() - last < play.setting.graceMs) play.setting.meetings.add(idle.place)
  else play.uncontrolled ??= idle.what
}

export function note(play: Play, kind: Note['kind'], message: string): void {
  play.notes.set(message, { kind, message })
}

export function nameOf(play: Play, flow: number): string {
  return play.setting.names[flow] ?? `flow ${flow}`
}

// A session keeps its settings from run to run, so its record does too. A client may get a new session.
const records = new WeakMap<
  GatedConnection,
  { readonly pid: number; readonly record: TransactionRecord }
>()

/** The lane of a flow on this connection; lanes are counted in the order of their first unit. */
export function laneOf(play: Play, flow: number, connection: GatedConnection): Lane {
  const known = play.lanes.find((lane) => lane.connection === connection && lane.flow === flow)
  if (known) return known
  const record = recordOf(play, connection)
  // What an earlier run has left open was rolled back since.
  if (play.lanes.every((lane) => lane.connection !== connection)) record.clear('rollback')
  return addLane(play, flow, connection, record)
}

function recordOf({ setting }: Play, connection: GatedConnection): TransactionRecord {
  const { pid, told } = connection
  const kept = records.get(connection)
  if (kept?.pid === pid) return kept.record
  const level = told === undefined ? setting.isolation : levelNamed(told)
  const record = createTransactionRecord(level)
  records.set(connection, { pid, record })
  return record
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
