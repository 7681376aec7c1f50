import type { GatedConnection } from '../../gate/gated-connection.ts'
import type { Settlement, Unit } from '../../gate/unit.ts'
import { noteBetweenRuns } from '../connection/latecomers.ts'
import { loseSession } from './lose-session.ts'
import { laneOf, type Play, seen, userOf } from './play.ts'
import type { RunEvents } from '../connection/shared-connections.ts'
import { shapeOf, type TableName } from '../statement/statement-shape.ts'

/** What a client asks when it gets to know the server; more than that is part of the flow. */
const quietLimit = 50

/** Takes in what the gates tell during a run. */
export function attend(play: Play): RunEvents {
  function parked(flow: number, connection: GatedConnection): void {
    const { unit } = connection
    if (!unit) return
    // Inside of a transaction it may be what takes the snapshot.
    if (play.quiet < quietLimit && connection.state === 'I' && isQuiet(unit)) {
      play.quiet += 1
      return connection.pass({ split: false, deliver: true })
    }
    // The flow has not begun: whoever sends is left of an earlier run.
    if (play.performers[flow]?.performance === undefined) noteBetweenRuns(flow, unit)
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

  /** Somebody's who has lost the context of a flow, or of something that runs beside them. */
  function stray({ unit }: GatedConnection, way: 'context' | 'marks'): void {
    if (!unit || isQuiet(unit) || isPreparing(unit)) return
    const text = unit.statements.join('; ').replaceAll(/\s+/g, ' ').slice(0, 80)
    play.uncontrolled ??=
      way === 'marks'
        ? `A statement came through openPort() and passed at once: ${text}. It has no mark that says whose it is. Let the server add the traceparent of its request to every statement, as a comment of sqlcommenter (traceparent='…'), or to its session's application_name.`
        : `A statement was sent by nobody's flow, and passed at once: ${text}. Code that loses its asynchronous context (a queue, an event emitter), or that runs beside the flows, is not controlled.`
  }

  return { opened, parked, settled, closed, stray }
}

/** What clients ask to get to know the server; it is the same at any time, and asked only once. */
function isQuiet(unit: Unit): boolean {
  const [text, more] = unit.statements
  if (text === undefined || more !== undefined) return false
  const shape = shapeOf(text)
  if (shape.kind === 'local') return shape.verb === 'show'
  if (shape.kind !== 'query' || shape.verb !== 'select') return false
  // The types that postgres.js asks for. Other questions to the catalogue may meet another's DDL.
  if (shape.reads.length > 0) return shape.calls.size === 0 && shape.reads.every(isOfTypes)
  return shape.calls.size > 0 && [...shape.calls].every((name) => introductions.has(name))
}

/** What comes before the first statement of somebody and means nothing to others: BEGIN, SET. */
function isPreparing({ statements: [text, more] }: Unit): boolean {
  if (text === undefined || more !== undefined) return false
  const { kind, verb, isolation, resetsIsolation } = shapeOf(text)
  if (isolation !== undefined || resetsIsolation) return false
  return kind === 'begin' || (kind === 'local' && ['set', 'reset'].includes(verb))
}

const isOfTypes = ({ name }: TableName): boolean => name === 'pg_type' || name === 'pg_namespace'

const introductions = new Set(['version', 'current_database', 'current_schema', 'current_user'])
