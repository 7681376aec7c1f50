import { Client, Pool, type PoolClient } from 'pg'
import { GateStream } from '../../gate/gate-stream.ts'
import type { GatedConnection } from '../../gate/gated-connection.ts'
import { type GateListener, listen } from '../../gate/listen.ts'
import type { GateSite } from '../../gate/open-gate.ts'
import type { ServerAddress } from '../../gate/server-socket.ts'
import { flowIdentity } from './flow-identity.ts'
import { isLate, noteBetweenRuns } from './latecomers.ts'
import { login } from './login.ts'
import { levelQuestion } from '../statement/session-setting.ts'
import { attendShared, gatedPorts, type RunEvents } from './shared-connections.ts'

/** The ways to the database that one flow has. They outlive a run. */
export interface Wing {
  readonly url: string
  readonly pool: Pool
  readonly connections: ReadonlySet<GatedConnection>
  /** Of the pool, which opens another one when a connection is closed between runs. */
  isPooled(connection: GatedConnection): boolean
  /** It lies in the pool, and nobody uses it or waits for it. */
  isResting(connection: GatedConnection): boolean
  /** While it is barred nobody gets in: who tries belongs to a flow that has crashed. */
  bar(barred: boolean): void
  renewPool(): void
  /** Gives up the pool and the port: whoever still has them belongs to a run that is over. */
  renew(): Promise<void>
  close(): Promise<void>
}

/** All flows' ways to the database; between runs everything passes. */
export interface Stage {
  readonly wings: readonly Wing[]
  /** All connections of the wings. */
  connections(): GatedConnection[]
  /** Who hears of events from now on. */
  attend(events: RunEvents | undefined): void
  /** Nothing passes any more, for good. Tells which sessions there are. */
  leave(): number[]
  close(): Promise<void>
}

export async function createStage(
  url: string,
  flows: number,
  startOptions: string,
): Promise<Stage> {
  const target = readTarget(url)
  let events: RunEvents | undefined
  let left = false

  function siteOf(flow: number): GateSite {
    return {
      server: target.server,
      startOptions,
      question: levelQuestion,
      login: (parameters) => login({ connectionString: url }, parameters),
      opened(connection) {
        if (left) connection.hangUp()
        else events?.opened(flow, connection)
      },
      parked(connection) {
        if (left) connection.hangUp()
        else if (events) events.parked(flow, connection)
        else {
          if (connection.unit) noteBetweenRuns(flow, connection.unit)
          connection.pass({ split: false, deliver: true })
        }
      },
      settled: (connection, settlement) => events?.settled(flow, connection, settlement),
      closed: (connection) => events?.closed(flow, connection),
    }
  }

  const wings = await Promise.all(
    Array.from({ length: flows }, (_, flow) => createWing(target, siteOf(flow))),
  )

  return {
    wings,
    connections: () => wings.flatMap((wing) => [...wing.connections]),
    attend(next) {
      events = next
      attendShared(next)
    },
    leave() {
      left = true
      const connections = wings.flatMap((wing) => [...wing.connections])
      for (const connection of connections) {
        connection.freeze()
        connection.hangUp()
      }
      return connections.map(({ pid }) => pid)
    },
    async close() {
      events = undefined
      attendShared(undefined)
      await Promise.all(wings.map((wing) => wing.close()))
    },
  }
}

/** A site that keeps count of its open connections. */
function collecting(site: GateSite, connections: Set<GatedConnection>): GateSite {
  return {
    ...site,
    opened(connection) {
      connections.add(connection)
      site.opened(connection)
    },
    closed(connection) {
      connections.delete(connection)
      site.closed(connection)
    },
  }
}

export interface Target {
  readonly server: ServerAddress
  /** The same database behind another address. */
  urlAt(port: number): string
}

export function readTarget(url: string): Target {
  // The driver's own reading of the address, environment variables and all.
  const { host, port, user, password, database, ssl } = new Client({
    connectionString: url,
  }) as Client & { ssl: ServerAddress['ssl'] }
  const secret = typeof password === 'string' ? `:${encodeURIComponent(password)}` : ''
  const who = encodeURIComponent(user ?? 'postgres')
  const search = new URL(url.replace(/^[^:]+:/, 'postgres:')).searchParams
  for (const name of ['host', 'port', 'user', 'password', 'dbname', 'ssl', 'uselibpqcompat']) {
    search.delete(name)
  }
  for (const name of [...search.keys()].filter((key) => key.startsWith('ssl'))) search.delete(name)
  const rest = search.size > 0 ? `?${search.toString()}` : ''
  return {
    server: { host, port, ssl },
    urlAt: (own) =>
      `postgres://${who}${secret}@127.0.0.1:${own}/${encodeURIComponent(database ?? '')}${rest}`,
  }
}

const ignore = (): void => {}

/** The part of a client that tells its connection. */
interface PgClient {
  readonly connection: { readonly stream: object }
}

/** Who asks for a connection when the run is over gets none, and no error either: nobody would hear of it. */
function connectInTime(pool: Pool): Pool['connect'] {
  const connect = pool.connect.bind(pool) as (...values: readonly unknown[]) => unknown
  const inTime = (...values: readonly unknown[]): unknown => {
    if (!isLate(flowIdentity.getStore())) return connect(...values)
    return values.length === 0 ? Promise.withResolvers().promise : undefined
  }
  return inTime as Pool['connect']
}

async function createWing(target: Target, events: GateSite): Promise<Wing> {
  const connections = new Set<GatedConnection>()
  const pooled = new WeakSet<GatedConnection>()
  const resting = new WeakSet<object>()
  let barred = false
  let site = openSite()
  let listener: GateListener = await openPort()
  let pool = createPool(site)

  async function openPort(): Promise<GateListener> {
    const opened = await listen(site)
    gatedPorts.add(opened.port)
    return opened
  }

  function closePort(): void {
    gatedPorts.delete(listener.port)
    listener.close()
  }

  function openSite(): GateSite {
    const open = collecting(events, connections)
    const own: GateSite = {
      ...open,
      opened(connection) {
        // Whoever comes to a site that was given up belongs to a run that is over.
        if (barred || site !== own) connection.hangUp()
        else open.opened(connection)
      },
    }
    return own
  }

  function createPool(at: GateSite): Pool {
    const ofStream = new WeakMap<object, GatedConnection>()
    const connectionOf = (client: PoolClient): object =>
      ofStream.get((client as unknown as PgClient).connection.stream) ?? client
    const made = new Pool({
      connectionString: target.urlAt(listener.port),
      ssl: false,
      idleTimeoutMillis: 0,
      stream() {
        const stream: GateStream = new GateStream({
          ...at,
          opened(connection) {
            pooled.add(connection)
            ofStream.set(stream, connection)
            at.opened(connection)
          },
        })
        return stream
      },
    })
    made.on('acquire', (client) => resting.delete(connectionOf(client)))
    made.on('release', (_, client) => resting.add(connectionOf(client)))
    made.connect = connectInTime(made)
    // It is kept from run to run, and adapters of ORMs listen to it anew in each.
    made.setMaxListeners(0)
    // An idle connection that is cut between runs is replaced by the pool.
    made.on('error', ignore)
    made.on('connect', (client) => client.on('error', ignore))
    return made
  }

  return {
    get url() {
      return target.urlAt(listener.port)
    },
    get pool() {
      return pool
    },
    connections,
    isPooled: (connection) => pooled.has(connection),
    isResting: (connection) => resting.has(connection),
    bar(now) {
      barred = now
    },
    renewPool() {
      pool = createPool(site)
    },
    async renew() {
      closePort()
      site = openSite()
      listener = await openPort()
      pool = createPool(site)
    },
    async close() {
      closePort()
      for (const connection of connections) if (pooled.has(connection)) connection.hangUp()
      // A pool whose client was never given back would wait for ever.
      if (pool.totalCount === pool.idleCount) await pool.end()
    },
  }
}
