import type {
  Choice,
  Decision,
  FlowOutcome,
  Footprint,
  Note,
  Pending,
  Step,
  Trouble,
} from '../core/model.ts'
import type { GatedConnection } from '../gate/gated-connection.ts'
import type { Unit } from '../gate/unit.ts'
import type { Control } from './control.ts'
import { fingerprint } from './fingerprint.ts'
import { type FootprintReader, joinFootprints } from './footprint-reader.ts'
import { createLane, type DraftStep, isOccupied, type Lane, type Return } from './lane.ts'
import type { Flow, FlowContext } from './options.ts'
import { returned, threw, troubleIn } from './outcome.ts'
import { createSignal, drain } from './signal.ts'
import type { Stage } from './stage.ts'
import { shapeOf } from './statement-shape.ts'
import { createTransactionRecord, type TransactionRecord } from './transaction-record.ts'
import { findCircle, surelyBlocked } from './wait-graph.ts'

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

export type Decide = (decision: Decision, steps: readonly Step[]) => Choice

/** What a schedule left behind, before anybody looked at the tables. */
export interface Played {
  readonly steps: readonly Step[]
  readonly decisions: readonly Decision[]
  readonly outcomes: readonly FlowOutcome[]
  readonly deadlocks: number
  readonly trouble?: Trouble
  readonly notes: readonly Note[]
  /** Flows whose ways to the database must not be used again. */
  readonly spent: readonly number[]
}

interface Performer {
  outcome: FlowOutcome | undefined
  /** When something of it was last seen; it is taken for idle some time after. */
  seen: number
  idle: boolean
  readonly abort: AbortController
}

const records = new WeakMap<GatedConnection, TransactionRecord>()
const foreignMs = 1000

/** Plays the flows once, in the order that `decide` makes. */
export async function playSchedule(setting: ScheduleSetting, decide: Decide): Promise<Played> {
  const { names, stage, control, reader } = setting
  const signal = createSignal()
  const lanes: Lane[] = []
  const returns: Return[] = []
  const steps: DraftStep[] = []
  const decisions: Decision[] = []
  const notes = new Map<string, Note>()
  const performers: Performer[] = names.map(() => ({
    outcome: undefined,
    seen: performance.now(),
    idle: false,
    abort: new AbortController(),
  }))
  let trouble: Trouble | undefined
  let deadlocks = 0
  let activity = 0
  let quiet = 0
  /** Something was released: whoever is blocked has to be asked again. */
  let stale = false

  function note(kind: Note['kind'], message: string): void {
    notes.set(message, { kind, message })
  }

  function seen(flow: number): void {
    const performer = performers[flow]
    if (performer) {
      performer.seen = performance.now()
      performer.idle = false
    }
    activity += 1
    signal.notify()
  }

  // --- what the gates tell -----------------------------------------------------------------------

  function laneOf(flow: number, connection: GatedConnection): Lane {
    const known = lanes.find((lane) => lane.connection === connection)
    if (known) return known
    let record = records.get(connection)
    if (!record) {
      record = createTransactionRecord(setting.isolation)
      records.set(connection, record)
    }
    return addLane(flow, connection, record)
  }

  function addLane(
    flow: number,
    connection: GatedConnection | undefined,
    record: TransactionRecord,
  ): Lane {
    const place = lanes.filter((lane) => lane.flow === flow).length
    const lane = createLane(flow, place, connection, record)
    lanes.push(lane)
    return lane
  }

  stage.attend({
    opened: seen,
    parked(flow, connection) {
      const { unit } = connection
      if (!unit) return
      // A few questions when a client gets to know the server; more would be part of the flow.
      if (isQuiet(unit) && quiet < 50) {
        quiet += 1
        return connection.pass({ split: false, deliver: true })
      }
      const lane = laneOf(flow, connection)
      lane.status = 'parked'
      lane.unit = unit
      seen(flow)
    },
    settled(flow, connection, settlement) {
      const lane = lanes.find((candidate) => candidate.connection === connection)
      // Settled without having been scheduled: a quiet one.
      if (!lane || (lane.status !== 'running' && lane.status !== 'blocked')) return seen(flow)
      returns.push({ lane, settlement })
      // What is delivered may bring the next unit before this one is recorded.
      lane.status = settlement.held ? 'settled' : 'idle'
      seen(flow)
    },
    closed(flow, connection) {
      const lane = lanes.find((candidate) => candidate.connection === connection)
      if (lane) {
        if (lane.status === 'running' || lane.status === 'blocked') lose(lane)
        lane.status = 'closed'
        lane.record.clear()
      }
      stale = true
      seen(flow)
    },
  })

  /** The connection went away under a statement. */
  function lose(lane: Lane): void {
    if (!lane.draft || performers[lane.flow]?.outcome?.kind === 'crashed') return
    lane.draft.answer = {
      rowCount: 0,
      error: { sqlstate: '08006', message: 'the connection was lost' },
    }
    lane.draft.footprint = lane.record.ends('rollback')
  }

  // --- the flows ---------------------------------------------------------------------------------

  function contextOf(flow: number): FlowContext {
    const wing = stage.wings[flow]
    const performer = performers[flow]
    if (!wing || !performer) throw new RangeError(`no flow ${flow}`)
    const own = createTransactionRecord(setting.isolation)
    return {
      flow: names[flow] ?? '',
      url: wing.url,
      pool: wing.pool,
      signal: performer.abort.signal,
      step(label) {
        const free = lanes.find((lane) => lane.record === own && lane.status === 'idle')
        const lane = free ?? addLane(flow, undefined, own)
        return new Promise((resolve) => {
          lane.status = 'parked'
          lane.unit = {
            statements: [`-- ${label}`],
            parameters: [],
            splittable: false,
            closesCycle: false,
          }
          lane.resume = resolve
          seen(flow)
        })
      },
    }
  }

  async function perform(flow: number): Promise<void> {
    const performer = performers[flow]
    if (!performer) return
    let outcome: FlowOutcome
    try {
      outcome = returned(await setting.flows[flow]?.(contextOf(flow)))
    } catch (reason) {
      outcome = threw(reason)
      if (!performer.outcome) trouble ??= troubleIn(reason, flow, names[flow] ?? '')
    }
    // Whatever a crashed flow still does, nobody hears of it.
    performer.outcome ??= outcome
    seen(flow)
  }

  // --- rest --------------------------------------------------------------------------------------

  function isAtRest(flow: number): boolean {
    const performer = performers[flow]
    if (!performer || performer.idle) return true
    const own = lanes.filter((lane) => lane.flow === flow)
    const connecting = [...(stage.wings[flow]?.connections ?? [])].some(
      ({ phase }) => phase === 'starting',
    )
    if (connecting && performer.outcome === undefined) return false
    return performer.outcome !== undefined || own.some(isOccupied)
  }

  /** Waits until every flow waits for us, for another flow, or for something that we do not control. */
  async function rest(): Promise<void> {
    while (!trouble) {
      await settle()
      if (trouble) return
      const moving = performers.filter((_, flow) => !isAtRest(flow))
      if (moving.length === 0) {
        const before = activity
        await drain()
        if (activity === before && !lanes.some(isUnderWay) && returns.length === 0) return
        continue
      }
      const deadline = Math.min(...moving.map(({ seen: last }) => last)) + setting.graceMs
      const left = deadline - performance.now()
      if (left > 0) await signal.wait(Math.ceil(left))
      else moving.forEach(declareIdle)
    }
  }

  function declareIdle(performer: Performer): void {
    if (performance.now() - performer.seen < setting.graceMs) return
    const flow = performers.indexOf(performer)
    const connecting = [...(stage.wings[flow]?.connections ?? [])].some(
      ({ phase }) => phase === 'starting',
    )
    if (connecting && performance.now() - performer.seen < setting.hangMs) return
    performer.idle = true
    const waiting = stage.wings[flow]?.pool.waitingCount ?? 0
    const name = names[flow] ?? ''
    note(
      'uncontrolled-wait',
      waiting > 0
        ? `${name} waited for a connection of its pool: the pool is too small for what it does at once.`
        : `${name} waited for something other than SQL for more than ${setting.graceMs} ms; ` +
            'the others went on meanwhile. Orders that depend on it are not explored.',
    )
  }

  function isUnderWay(lane: Lane): boolean {
    return lane.status === 'running' || lane.status === 'settled'
  }

  /** Waits until every statement that was let pass is back, or surely waits for another flow. */
  async function settle(): Promise<void> {
    let delay = 1
    while (!trouble) {
      for (let back = returns.shift(); back; back = returns.shift()) {
        await record(back)
        stale = true
        delay = 1
      }
      const running = lanes.filter(({ status }) => status === 'running')
      if (running.length === 0) {
        const blocked = lanes.filter(({ status }) => status === 'blocked')
        if (!stale || blocked.length === 0) return
        stale = false
        await recheck(blocked)
        continue
      }
      if (await signal.wait(delay)) continue
      await probe(running)
      delay = Math.min(delay * 2, 10)
    }
  }

  function ourPids(): Set<number> {
    return new Set(
      stage.wings.flatMap((wing) => [...wing.connections].map((connection) => connection.pid)),
    )
  }

  async function probe(running: readonly Lane[]): Promise<void> {
    const asked = running.filter(({ connection }) => connection !== undefined)
    const waits = await control.waits(asked.map((lane) => lane.connection?.pid ?? 0))
    const ours = ourPids()
    const blocked = surelyBlocked(asked, waits, ours)
    for (const [lane, blockers] of blocked) {
      const waitedFor = await reader.waitedFor(lane.connection?.pid ?? 0)
      // It may have come back while we asked.
      if (lane.status !== 'running') continue
      lane.status = 'blocked'
      lane.blockers = blockers
      lane.waitedFor = waitedFor
      nameBlockers(lane)
      seen(lane.flow)
    }
    const now = performance.now()
    for (const lane of asked.filter(({ status }) => status === 'running')) {
      const blockers = waits.find(({ pid }) => pid === lane.connection?.pid)?.blockers ?? []
      const foreign = blockers.length > 0 && blockers.every((pid) => !ours.has(pid))
      lane.foreignSince = foreign ? (lane.foreignSince ?? now) : undefined
      if (lane.foreignSince !== undefined && now - lane.foreignSince > foreignMs) {
        trouble ??= {
          kind: 'external-blocker',
          flow: lane.flow,
          message:
            `${names[lane.flow]} waits for a lock of a session that is not part of the run: ` +
            `${await control.describe(blockers)}. End it, or give the test a database of its own.`,
        }
      } else if (now - lane.since > setting.hangMs && blockers.length === 0) {
        trouble ??= {
          kind: 'hung-flow',
          flow: lane.flow,
          message:
            `A statement of ${names[lane.flow]} ran for more than ${setting.hangMs} ms without ` +
            `waiting for a lock: ${lane.unit?.statements[0] ?? ''}`,
        }
      }
    }
  }

  function nameBlockers(lane: Lane): void {
    if (!lane.draft) return
    const flows = new Set(lane.draft.waitedFor)
    stage.wings.forEach((wing, flow) => {
      if ([...wing.connections].some(({ pid }) => lane.blockers.includes(pid))) flows.add(flow)
    })
    lane.draft.waitedFor = [...flows].sort((one, other) => one - other)
  }

  async function recheck(blocked: readonly Lane[]): Promise<void> {
    const waits = await control.waits(blocked.map((lane) => lane.connection?.pid ?? 0))
    const still = surelyBlocked(blocked, waits, ourPids())
    for (const lane of blocked) {
      if (lane.status !== 'blocked') continue
      const blockers = still.get(lane)
      if (blockers) {
        lane.blockers = blockers
        nameBlockers(lane)
      } else {
        lane.status = 'running'
        lane.since = performance.now()
      }
    }
  }

  // --- steps -------------------------------------------------------------------------------------

  function begin(lane: Lane, choice: Choice, half: Step['half']): DraftStep {
    const draft: DraftStep = {
      index: steps.length,
      flow: lane.flow,
      lane: lane.lane,
      choice,
      half,
      statements: lane.unit?.statements ?? [],
      parameters: lane.unit?.parameters ?? [],
      before: half === 'commit' ? 'T' : (lane.connection?.state ?? 'I'),
      after: lane.connection?.state ?? 'I',
      waitedFor: [],
      answer: { rowCount: 0 },
      footprint: { opaque: false, touches: [], isolation: lane.record.isolation },
      pid: lane.connection?.pid ?? 0,
    }
    steps.push(draft)
    lane.draft = draft
    lane.choice = choice
    lane.waitedFor = undefined
    lane.since = performance.now()
    lane.foreignSince = undefined
    return draft
  }

  /** Completes the step of a lane whose statement came back. */
  async function record({ lane, settlement }: Return): Promise<void> {
    const { draft, connection } = lane
    if (!draft || !connection) return
    if (draft.waitedFor.length > 0) draft.resumedAfter = Math.max(0, steps.length - 1)
    draft.after = settlement.after
    const { error } = settlement.answer
    if (lane.committing) {
      // Part of the step that executed it; only an error of the commit is news.
      lane.committing = false
      if (error) draft.answer = { ...draft.answer, error }
      return finish(lane)
    }
    draft.answer = settlement.answer
    if (draft.half === 'commit') {
      draft.footprint = lane.record.ends(error ? 'rollback' : 'commit')
      lane.record.clear()
      return finish(lane)
    }
    draft.parameters = settlement.unit.parameters
    const { footprint, idle } = await reader.derive({
      settlement,
      pid: connection.pid,
      record: lane.record,
      waitedFor: lane.waitedFor,
    })
    draft.footprint = footprint
    if (!settlement.held) return finish(lane)
    if (setting.split && !idle) {
      draft.half = 'execute'
      lane.status = 'held'
      return
    }
    if (!idle) draft.footprint = joinFootprints(footprint, lane.record.ends('commit'))
    lane.record.clear()
    lane.committing = true
    lane.status = 'running'
    lane.since = performance.now()
    connection.commit(lane.choice?.action !== 'lose-answer')
  }

  async function finish(lane: Lane): Promise<void> {
    lane.draft = undefined
    if (lane.choice?.action === 'lose-answer') await crash(lane.flow)
  }

  /** Ends a flow as the death of its process would. */
  async function crash(flow: number): Promise<void> {
    const performer = performers[flow]
    const wing = stage.wings[flow]
    if (!performer || !wing) return
    performer.outcome = { kind: 'crashed' }
    const open = [...wing.connections]
    for (const connection of open) {
      connection.freeze()
      connection.hangUp()
    }
    const stuck = lanes.filter((lane) => lane.flow === flow && lane.status === 'blocked')
    await control.terminate(stuck.map((lane) => lane.connection?.pid ?? 0))
    for (const lane of lanes) if (lane.flow === flow) lane.status = 'closed'
    const deadline = performance.now() + setting.hangMs
    while (open.some(({ phase }) => phase !== 'closed') && performance.now() < deadline) {
      await signal.wait(10)
    }
    stale = true
    seen(flow)
  }

  // --- choices -----------------------------------------------------------------------------------

  function pendingOf(lane: Lane, action: Choice['action'] = 'go'): Pending {
    const half = lane.status === 'held' ? 'commit' : 'whole'
    const statements = lane.unit?.statements ?? []
    return {
      choice: { flow: lane.flow, lane: lane.lane, action },
      half,
      statements,
      parameters: lane.unit?.parameters ?? [],
      fingerprint: fingerprint(statements, half, lane.lane, lane.units),
    }
  }

  function enabledLanes(): Lane[] {
    return lanes
      .filter(({ status }) => status === 'parked' || status === 'held')
      .sort((one, other) => one.flow - other.flow || one.lane - other.lane)
  }

  function ask(enabled: readonly Pending[]): Choice {
    const blocked = new Set(
      lanes.filter(({ status }) => status === 'blocked').map(({ flow }) => flow),
    )
    const decision: Decision = {
      index: steps.length,
      enabled,
      blocked: [...blocked].sort((one, other) => one - other),
    }
    const choice = decide(decision, steps)
    decisions.push(decision)
    return choice
  }

  async function apply(lane: Lane, choice: Choice): Promise<void> {
    const half = lane.status === 'held' ? 'commit' : 'whole'
    const draft = begin(lane, choice, half)
    if (choice.action === 'crash') {
      for (const { record: other } of lanes.filter(({ flow }) => flow === lane.flow)) {
        draft.footprint = joinFootprints(draft.footprint, other.ends('rollback'))
      }
      draft.after = 'I'
      lane.draft = undefined
      return crash(lane.flow)
    }
    lane.status = 'running'
    const deliver = choice.action !== 'lose-answer'
    if (lane.resume) return passPlace(lane, draft)
    if (half === 'commit') {
      lane.connection?.commit(deliver)
      return
    }
    lane.units += 1
    const [text = ''] = lane.unit?.statements ?? []
    if ((lane.unit?.statements.length ?? 0) > 1) {
      note('several-statements', 'A query held several statements; they are one step.')
    }
    if (isUnorderedLimit(text)) {
      note('unordered-limit', `LIMIT without ORDER BY: the server may choose any rows. ${text}`)
    }
    lane.connection?.pass({ split: !reader.onlyReads(text), deliver })
  }

  /** A place that the flow marked: two of one name may be about the same thing elsewhere. */
  function passPlace(lane: Lane, draft: DraftStep): void {
    const { resume } = lane
    const [label = ''] = lane.unit?.statements ?? []
    draft.footprint = {
      ...draft.footprint,
      touches: [{ object: `step ${label.slice(3)}`, mode: 'exclusive' }],
    }
    lane.resume = undefined
    lane.draft = undefined
    lane.status = 'idle'
    lane.units += 1
    seen(lane.flow)
    resume?.()
  }

  /** Lets one of those who wait in a circle die, as PostgreSQL would have done in a moment. */
  async function endCircle(circle: readonly Lane[]): Promise<void> {
    for (const [index, lane] of circle.entries()) {
      const next = circle[(index + 1) % circle.length]
      const hard = await control.holdsAgainst(lane.connection?.pid ?? 0, next?.connection?.pid ?? 0)
      // A mere place in a queue: the server may yet resolve it by letting somebody pass.
      if (!hard) return awaitServer()
    }
    const candidates = [...circle].sort(
      (one, other) => one.flow - other.flow || one.lane - other.lane,
    )
    const first = circle.reduce((one, other) => (one.since <= other.since ? one : other))
    let victim: Lane | undefined = first
    let draft: DraftStep | undefined
    if (setting.victims === 'choose') {
      const choice = ask(candidates.map((lane) => pendingOf(lane, 'victim')))
      victim = candidates.find(({ flow, lane }) => flow === choice.flow && lane === choice.lane)
      if (!victim || choice.action !== 'victim') return diverge(choice)
      const own = victim.draft
      draft = begin(victim, choice, 'whole')
      draft.statements = []
      draft.parameters = []
      draft.before = 'T'
      victim.draft = own
    } else note('server-chose-victim', 'Of a deadlock the one that waited first was ended.')
    deadlocks += 1
    const pid = victim.connection?.pid ?? 0
    victim.connection?.answerAsDeadlock(
      circle
        .map(({ connection }, index) => {
          const next = circle[(index + 1) % circle.length]?.connection?.pid ?? 0
          return `Process ${connection?.pid ?? 0} waits for process ${next}.`
        })
        .join('\n'),
    )
    const record = victim.draft
    victim.status = 'running'
    await control.cancel(pid)
    await settle()
    if (draft && record) {
      draft.answer = record.answer
      draft.after = record.after
      draft.footprint = record.footprint
    }
  }

  async function awaitServer(): Promise<void> {
    const before = activity
    const deadline = performance.now() + setting.hangMs
    while (activity === before && performance.now() < deadline) await signal.wait(50)
    if (activity === before) giveUp()
    else note('server-chose-victim', 'A deadlock was resolved by the server in its own way.')
  }

  function diverge(choice: Choice): void {
    trouble ??= {
      kind: 'diverged',
      message:
        `Step ${steps.length}: ${names[choice.flow] ?? choice.flow} (connection ${choice.lane}) ` +
        `cannot ${choice.action} here. The flows did not do what they did before.`,
    }
  }

  // --- when nothing goes on ----------------------------------------------------------------------

  async function waitForAnything(): Promise<void> {
    const blocked = lanes.filter(({ status }) => status === 'blocked')
    const over = (pid: number): number =>
      stage.wings.findIndex(
        (wing, flow) =>
          performers[flow]?.outcome !== undefined &&
          [...wing.connections].some((connection) => connection.pid === pid),
      )
    for (const lane of blocked) {
      const owner = lane.blockers.map(over).find((flow) => flow !== -1)
      if (owner === undefined) continue
      trouble ??= {
        kind: 'hung-flow',
        flow: lane.flow,
        message:
          `${names[lane.flow]} waits for a lock that ${names[owner]} still holds although it has ` +
          'ended: its transaction was left open. Commit, roll back, and release the client.',
      }
      return
    }
    const before = activity
    const deadline = performance.now() + setting.hangMs
    while (activity === before && performance.now() < deadline) {
      await signal.wait(Math.ceil(deadline - performance.now()))
    }
    if (activity === before) giveUp()
  }

  function giveUp(): void {
    const flow = performers.findIndex(({ outcome }) => outcome === undefined)
    const name = names[flow] ?? ''
    const waiting = stage.wings[flow]?.pool.waitingCount ?? 0
    trouble ??=
      waiting > 0
        ? {
            kind: 'pool-too-small',
            flow,
            message:
              `${name} waits for a connection of its pool, and all of them are in use by itself. ` +
              'Give the pool as many connections as the flow uses at once.',
          }
        : {
            kind: 'hung-flow',
            flow,
            message:
              `${name} neither ended nor sent a statement for ${setting.hangMs} ms. ` +
              'It waits for something that does not come: a promise, another flow, a connection.',
          }
  }

  // --- the play ----------------------------------------------------------------------------------

  async function play(): Promise<void> {
    names.forEach((_, flow) => void perform(flow))
    while (!trouble) {
      await rest()
      if (trouble) return
      const circle = findCircle(lanes)
      if (circle) {
        await endCircle(circle)
        continue
      }
      const enabled = enabledLanes()
      if (enabled.length === 0) {
        if (performers.every(({ outcome }) => outcome !== undefined)) return
        await waitForAnything()
        continue
      }
      if (steps.length >= setting.steps) {
        trouble = {
          kind: 'step-limit',
          message: `The flows were not done after ${setting.steps} steps. Raise the limit, or look for a loop.`,
        }
        return
      }
      const choice = ask(enabled.map((lane) => pendingOf(lane)))
      const lane = enabled.find((one) => one.flow === choice.flow && one.lane === choice.lane)
      if (lane && choice.action !== 'victim') await apply(lane, choice)
      else diverge(choice)
    }
  }

  try {
    await play()
  } finally {
    stage.attend(undefined)
    for (const { abort } of performers) abort.abort()
  }
  const spent = performers.flatMap(({ outcome }, flow) =>
    outcome === undefined || outcome.kind === 'crashed' ? [flow] : [],
  )
  return {
    steps,
    decisions,
    outcomes: performers.map(({ outcome }) => outcome ?? { kind: 'unfinished' }),
    deadlocks,
    ...(trouble && { trouble }),
    notes: [...notes.values()],
    spent,
  }
}

/** What clients ask to get to know the server; it is the same at any time, and asked only once. */
function isQuiet(unit: Unit): boolean {
  if (unit.statements.length !== 1) return false
  const shape = shapeOf(unit.statements[0] ?? '')
  if (shape.kind === 'local') return shape.verb === 'show'
  if (shape.kind !== 'query' || shape.verb !== 'select') return false
  if (shape.names.has('pg_type') || shape.names.has('pg_catalog')) return !shape.lockingRead
  return shape.calls.size > 0 && [...shape.names].every((name) => introductions.has(name))
}

const introductions = new Set([
  'select',
  'from',
  'as',
  'version',
  'current_database',
  'current_schema',
  'current_user',
])

function isUnorderedLimit(text: string): boolean {
  const { names, kind } = shapeOf(text)
  return kind === 'query' && names.has('limit') && !names.has('order')
}
