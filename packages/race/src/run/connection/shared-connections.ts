import type { GatedConnection } from '../../gate/gated-connection.ts'
import type { GateSite } from '../../gate/open-gate.ts'
import type { ServerAddress } from '../../gate/server-socket.ts'
import type { Settlement } from '../../gate/unit.ts'
import { type FlowIdentity, flowIdentity } from './flow-identity.ts'
import { noteBetweenRuns, noteLate } from './latecomers.ts'
import { levelQuestion } from '../statement/session-setting.ts'

/** What a run wants to hear of its flows' connections. */
export interface RunEvents {
  parked(flow: number, connection: GatedConnection): void
  settled(flow: number, connection: GatedConnection, settlement: Settlement): void
  closed(flow: number, connection: GatedConnection): void
  opened(flow: number, connection: GatedConnection): void
  /** A statement of nobody in the run, which nothing keeps waiting. */
  stray(connection: GatedConnection, way: Way): void
}

/** How a shared client's statements are told apart: by whose code sends, or by marks, as through `openPort`. */
type Way = 'context' | 'marks'

/** Connections of clients that the code under test keeps for itself; see `instrument`. */
export const sharedConnections: Set<GatedConnection> = new Set()

/** Connections whose session is over and whose client is not: they get a new one before they are used. */
export const dormant: Set<GatedConnection> = new Set()

/** Clients that look at the others and must never wait at a gate. */
export const uncontrolled: WeakSet<object> = new WeakSet()

/** Ports of this process that lead through a gate: who connects there is not to be gated twice. */
export const gatedPorts: Set<number> = new Set()

/** Databases that a clone stands in for while it is explored: the clone's name by port and name. */
const led = new Map<string, string>()
/** Where the client of a shared connection wants to go, by port and name. */
const wanted = new WeakMap<GatedConnection, string>()

/** Sessions that begin from now on on this database begin on the clone, or again on the database itself. */
export function leadShared(database: string, clone: string | undefined): void {
  if (clone === undefined) led.delete(database)
  else led.set(database, clone)
}

/** Shared connections whose clients want this database. */
export function sharedWith(database: string): GatedConnection[] {
  return [...sharedConnections].filter((connection) => wanted.get(connection) === database)
}

let events: RunEvents | undefined

/** Who hears of shared connections from now on; without anybody everything passes. */
export function attendShared(next: RunEvents | undefined): void {
  events = next
}

const nobody = -1

function flowOf(connection: GatedConnection): number {
  return (connection.owner as FlowIdentity | undefined)?.flow ?? nobody
}

/** A gate for a client that several flows share. By default whose code sends tells who uses it. */
export function sharedSite(
  server: ServerAddress,
  login: GateSite['login'],
  by: Pick<GateSite, 'identify' | 'inherits'> = { identify: () => flowIdentity.getStore() },
): GateSite {
  return {
    ...by,
    server,
    login,
    startOptions: '',
    question: levelQuestion,
    lead(connection, parameters) {
      const database = `${server.port}/${parameters.get('database') ?? parameters.get('user')}`
      wanted.set(connection, database)
      const clone = led.get(database)
      return clone === undefined ? parameters : new Map([...parameters, ['database', clone]])
    },
    opened(connection) {
      sharedConnections.add(connection)
      events?.opened(flowIdentity.getStore()?.flow ?? nobody, connection)
    },
    parked(connection) {
      const owner = connection.owner as FlowIdentity | undefined
      if (owner?.over) {
        // Of a flow whose run is over.
        if (owner.ended && connection.unit) {
          noteLate(owner)
          noteBetweenRuns(owner.flow, connection.unit)
        }
        connection.freeze()
        connection.hangUp()
        connection.bury()
        dormant.add(connection)
      } else if (events && owner) events.parked(owner.flow, connection)
      else {
        events?.stray(connection, by.inherits === true ? 'marks' : 'context')
        connection.pass({ split: false, deliver: true })
      }
    },
    settled: (connection, settlement) =>
      events?.settled(flowOf(connection), connection, settlement),
    closed(connection) {
      sharedConnections.delete(connection)
      events?.closed(flowOf(connection), connection)
    },
  }
}
