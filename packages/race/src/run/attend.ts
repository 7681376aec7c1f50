import type { GatedConnection } from '../gate/gated-connection.ts'
import type { Settlement, Unit } from '../gate/unit.ts'
import { joinFootprints } from './footprint-reader.ts'
import type { Lane } from './lane.ts'
import { laneOf, nameOf, type Play, seen, userOf } from './play.ts'
import type { RunEvents } from './shared-connections.ts'
import { shapeOf } from './statement-shape.ts'

/** What a client asks when it gets to know the server; more than that is part of the flow. */
const quietLimit = 50

/** Takes in what the gates tell during a run. */
export function attend(play: Play): RunEvents {
  function parked(flow: number, connection: GatedConnection): void {
    const { unit } = connection
    if (!unit) return
    if (play.quiet < quietLimit && isQuiet(unit)) {
      play.quiet += 1
      return connection.pass({ split: false, deliver: true })
    }
    const lane = laneOf(play, flow, connection)
    lane.status = 'parked'
    lane.unit = unit
    seen(play, flow)
  }

  function settled(flow: number, connection: GatedConnection, settlement: Settlement): void {
    const lane = userOf(play, connection)
    // What was let pass without being scheduled is of no interest.
    if (lane && (lane.status === 'running' || lane.status === 'blocked')) {
      play.returns.push({ lane, settlement })
      // What is delivered may bring the next unit before this one is recorded.
      lane.status = settlement.held ? 'settled' : 'idle'
    }
    seen(play, lane?.flow ?? flow)
  }

  function closed(flow: number, connection: GatedConnection): void {
    const lane = userOf(play, connection)
    if (lane) lose(play, lane)
    play.stale = true
    seen(play, lane?.flow ?? flow)
  }

  function opened(flow: number, connection: GatedConnection): void {
    // What is left of a crashed flow gets no answer.
    if (play.performers[flow]?.outcome?.kind === 'crashed') connection.freeze()
    seen(play, flow)
  }

  return { opened, parked, settled, closed }
}

/** A session ended: what it held is free, and that belongs to the last thing that its flow did. */
function lose(play: Play, lane: Lane): void {
  const { status } = lane
  lane.status = 'closed'
  if (play.performers[lane.flow]?.outcome?.kind === 'crashed') return
  const last = play.steps.findLast((step) => step.flow === lane.flow)
  if (last) last.footprint = joinFootprints(last.footprint, lane.record.ends('rollback'))
  lane.record.clear()
  if ((status !== 'running' && status !== 'blocked') || !lane.draft) return
  const message = 'the connection was lost'
  lane.draft.answer = { rowCount: 0, error: { sqlstate: '08006', message } }
  // A client that gave up on its statement knows what it did.
  if (lane.connection?.left) return
  play.trouble ??= {
    kind: 'connection-lost',
    flow: lane.flow,
    message:
      `The server ended a session of ${nameOf(play, lane.flow)} while it ran a statement. ` +
      'Look into the log of the server.',
  }
}

/** What clients ask to get to know the server; it is the same at any time, and asked only once. */
function isQuiet(unit: Unit): boolean {
  const [text, more] = unit.statements
  if (text === undefined || more !== undefined) return false
  const shape = shapeOf(text)
  if (shape.kind === 'local') return shape.verb === 'show'
  if (shape.kind !== 'query' || shape.verb !== 'select') return false
  // The types that postgres.js asks for. Other questions to the catalogue may meet another's DDL.
  if (shape.names.has('pg_type')) return shape.calls.size === 0 && !shape.names.has('pg_class')
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
