import { Client, Pool } from 'pg'
import { GateStream } from '../gate/gate-stream.ts'
import type { GatedConnection } from '../gate/gated-connection.ts'
import { type GateListener, listen } from '../gate/listen.ts'
import type { GateSite } from '../gate/open-gate.ts'
import type { ServerAddress } from '../gate/server-socket.ts'
import { login } from './login.ts'
import { levelQuestion } from './session-setting.ts'
import { attendShared, gatedPorts, type RunEvents } from './shared-connections.ts'

/** The ways to the database that one flow has. They outlive a run. */
export interface Wing {
  readonly url: string
  readonly pool: Pool
  readonly connections: ReadonlySet<GatedConnection>
  /** Of the pool, which opens another one when a connection is closed between runs. */
  isPooled(connection: GatedConnection): boolean
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
  close(): Promise<void>
}

export async function createStage(
  url: string,
  flows: number,
  startOptions: string,
): Promise<Stage> {
  const target = readTarget(url)
  let events: RunEvents | undefined

  function siteOf(flow: number): GateSite {
    return {
      server: target.server,
      startOptions,
      question: levelQuestion,
      login: (parameters) => login({ connectionString: url }, parameters),
      opened: (connection) => events?.opened(flow, connection),
      parked(connection) {
        if (events) events.parked(flow, connection)
        else connection.pass({ split: false, deliver: true })
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

async function createWing(target: Target, events: GateSite): Promise<Wing> {
  const connections = new Set<GatedConnection>()
  const pooled = new WeakSet<GatedConnection>()
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
    const made = new Pool({
      connectionString: target.urlAt(listener.port),
      ssl: false,
      idleTimeoutMillis: 0,
      stream: () =>
        new GateStream({
          ...at,
          opened(connection) {
            pooled.add(connection)
            at.opened(connection)
          },
        }),
    })
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
