import type { GatedConnection } from '../gate/gated-connection.ts'
import type { Settlement, Unit } from '../gate/unit.ts'
import { loseSession } from './lose-session.ts'
import { laneOf, type Play, seen, userOf } from './play.ts'
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
    // What it answered before it ended is recorded first.
    const answered = play.returns.some((back) => back.lane === lane)
    if (lane && answered) lane.status = 'closed'
    else if (lane) loseSession(play, lane)
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
