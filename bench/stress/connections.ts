import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import {
  databaseOf,
  type PgBouncer,
  type PostgresServer,
  startPgBouncer,
  startPostgres,
  withClient,
} from '@holdfast/testkit'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import { ownFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { counted } from '../harness/counted.ts'
import { openPool } from '../harness/open-pool.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { quantile } from '../harness/summary.ts'
import { startTeam } from '../harness/team.ts'
import { weakenedFiles } from '../ledger/weakened-files.ts'
import { checkConnections, type Told } from './connections-checks.ts'
import { type Fairness, fairnessOf, unfair } from './connections-fairness.ts'
import {
  type Memory,
  memoryText,
  peakBytesOf,
  serverBytes,
  tooMuchMemory,
} from './connections-memory.ts'
import { books, keys, opening, tables } from './connections-work.ts'

export interface ClientsSetup {
  readonly url: string
  /** For every fourth client: another way in, to a pool of its own. */
  readonly heldBack: string | undefined
  readonly clients: number
  readonly seed: number
  readonly guarded: boolean
}

export interface ClientsOrder {
  readonly seconds: number
}

export interface ClientsReport {
  /** When its clients began to leave. */
  readonly enoughUs: number
  /** Of each client, the beginning and the end of each of its visits. */
  readonly visits: readonly (readonly [client: number, askedAndEndedUs: readonly number[]])[]
  readonly told: Told
  readonly troubles: readonly string[]
  /** Of memory: before the first connection, and at most in each half of the work. */
  readonly beforeBytes: number
  readonly peakBytes: readonly [number, number]
}

const processes = 4
const serverConnections = 32
const full = { clients: 10_000, seconds: 150 }
const brief = { clients: 1_000, control: 400 }
/** Of `--seconds`: for the load, and for that of the controls. */
const [loadShare, controlShare] = [0.4, 0.15]

export const connections: StressScenario = {
  about: `${full.clients} connections through PgBouncer onto ${serverConnections}: right, bounded, fair`,
  async run({ seconds, seed, progress }) {
    const size = seconds === undefined ? full.clients : brief.clients
    const loadSeconds = seconds === undefined ? full.seconds : Math.max(2, seconds * loadShare)
    const control = { seconds: Math.max(2, (seconds ?? 60) * controlShare), clients: brief.control }
    await assertRoom(size)
    progress('starting PostgreSQL')
    await using server = await startPostgres()
    const attack = { server, seed, progress, guarded: true, heldBack: false }
    const played = await play({ ...attack, clients: size, seconds: loadSeconds })
    // Two protections are gone at once; each is missed by a check of its own.
    const weak = await play({ ...attack, ...control, guarded: false, heldBack: true })
    return {
      operations: played.operations,
      violations: [
        ...played.wrong,
        ...played.troubles,
        ...unfair(played.fairness),
        ...played.tooMuch,
      ],
      controls: {
        no_guard: weak.wrong.some((one) => one.includes('was due')) ? 'caught' : 'missed',
        unfair_pool: unfair(weak.fairness).length > 0 ? 'caught' : 'missed',
      },
      notes: [
        ...played.notes,
        `no_guard: ${weak.wrong.length} findings, the first: ${weak.wrong[0] ?? 'none'}`,
        `unfair_pool: ${fairnessText(weak.fairness)}; ${unfair(weak.fairness).join('; ')}`,
      ],
    }
  },
}

/** Descriptors that a process needs beside its connections. */
const spareDescriptors = 100

/** Refuses to begin what the system would end half-way. */
async function assertRoom(clients: number): Promise<void> {
  const most = Number(/^Max open files\s+(\d+)/m.exec(await text('/proc/self/limits'))?.[1])
  const needed = clients + serverConnections + spareDescriptors
  if (most < needed) {
    throw new Error(
      `PgBouncer needs ${needed} open files for ${clients} connections, and ${most} are allowed here. ` +
        `Raise the limit (ulimit -n ${needed}, as root: ulimit -Hn), or run the short form: --seconds 30`,
    )
  }
  const range = /^(\d+)\s+(\d+)/.exec(await text('/proc/sys/net/ipv4/ip_local_port_range'))
  const ports = Number(range?.[2]) - Number(range?.[1])
  if (ports < clients) {
    throw new Error(
      `${clients} connections need as many local ports, and there are ${ports}. ` +
        'Widen net.ipv4.ip_local_port_range, or run the short form: --seconds 30',
    )
  }
}

/** Empty where the system has no such file; then nothing is known and nothing refused. */
async function text(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}

interface Attack {
  readonly server: PostgresServer
  readonly clients: number
  readonly seconds: number
  readonly seed: number
  readonly guarded: boolean
  readonly heldBack: boolean
  readonly progress: (text: string) => void
}

interface Played {
  readonly operations: number
  readonly wrong: readonly string[]
  readonly troubles: readonly string[]
  readonly fairness: Fairness
  readonly tooMuch: readonly string[]
  readonly notes: readonly string[]
}

async function play(attack: Attack): Promise<Played> {
  const { server, clients, seconds, seed, guarded, heldBack, progress } = attack
  const url = await server.createDatabase('connections')
  await install(url, guarded)
  const database = databaseOf(url)
  await using pooler = await startPgBouncer(server, {
    poolSize: heldBack ? serverConnections - 1 : serverConnections,
    maxClients: clients + 10,
    aliases: heldBack ? { held_back: `dbname=${database} pool_size=1` } : {},
  })
  progress(`connecting ${clients} clients`)
  await using team = await startTeam<ClientsSetup, ClientsOrder, ClientsReport>(
    new URL('./connections-clients.ts', import.meta.url),
    processes,
    {
      url: pooler.url(database),
      heldBack: heldBack ? pooler.url('held_back') : undefined,
      clients: clients / processes,
      seed,
      guarded,
    },
  )
  progress(`working for ${seconds} s`)
  const watching = new AbortController()
  const watched = watch(server, pooler, watching.signal)
  const reports = await team.round({ seconds })
  watching.abort()
  const seen = await watched
  const visits = reports.flatMap((report) =>
    report.visits.flatMap(([client, times]) =>
      times.flatMap((askedUs, at) =>
        at % 2 === 0 ? [{ client, askedUs, endedUs: times[at + 1] ?? Number.NaN }] : [],
      ),
    ),
  )
  const told: Record<string, number> = {}
  for (const [entry, count] of reports.flatMap((report) => Object.entries(report.told))) {
    told[entry] = (told[entry] ?? 0) + count
  }
  progress('checking')
  const fairness = fairnessOf(visits, clients, Math.min(...reports.map(({ enoughUs }) => enoughUs)))
  const halves = [0, 1].map((half) =>
    Math.max(...reports.map(({ beforeBytes, peakBytes }) => (peakBytes[half] ?? 0) - beforeBytes)),
  )
  const memory: Memory = {
    pgbouncer: { bytes: (await peakBytesOf(pooler.pid)) ?? 0, connections: clients },
    clients: { bytes: Math.max(...halves), connections: clients / processes },
    postgres: { bytes: seen.serverBytes, connections: serverConnections },
    laterShare: (halves[1] ?? 0) / (halves[0] ?? 1),
  }
  const ends = visits.map(({ endedUs }) => endedUs)
  const lastedUs = quantile(ends, 1) - quantile(ends, 0)
  return {
    operations: visits.length,
    wrong: await checkConnections(url, told),
    troubles: counted(reports.flatMap(({ troubles }) => troubles)),
    fairness,
    tooMuch: [
      ...(seen.mostServers > serverConnections
        ? [`${seen.mostServers} server connections, ${serverConnections} are allowed`]
        : []),
      ...(seen.mostClients < clients ? [`only ${seen.mostClients} clients were connected`] : []),
      ...tooMuchMemory(memory),
    ],
    notes: [
      `${seen.mostClients} clients were connected at once, ${seen.mostWaiting} of them waiting, ` +
        `onto ${seen.mostServers} server connections; ${Math.round((visits.length / lastedUs) * 1e6)} visits/s`,
      fairnessText(fairness),
      memoryText(memory),
      `outcomes: ${Object.entries(summary(told))
        .map(([what, count]) => `${what} ${count}`)
        .join(', ')}`,
    ],
  }
}

function fairnessText({ jain, leastVisits, middleVisits, waitMs, rounds }: Fairness): string {
  return (
    `visits of a client: ${leastVisits} at least, ${middleVisits} in the middle, Jain ${jain.toFixed(4)}; ` +
    `waits: ${Math.round(waitMs.middle)} ms in the middle, ${Math.round(waitMs.p99)} ms p99, ` +
    `${Math.round(waitMs.most)} ms at most (${(waitMs.most / waitMs.middle).toFixed(1)} times the middle); ` +
    `in rounds of all clients ${rounds.middle.toFixed(2)} in the middle, ${rounds.most.toFixed(2)} at most`
  )
}

/** Summed up over keys. */
function summary(told: Told): Record<string, number> {
  const all: Record<string, number> = {}
  for (const [entry, count] of Object.entries(told)) {
    const what = entry.startsWith('once ') ? 'once' : entry.slice(0, entry.indexOf('|'))
    all[what] = (all[what] ?? 0) + count
  }
  return all
}

/** Holdfast's schema, for the control without its guards, and what there is to be had. */
async function install(url: string, guarded: boolean): Promise<void> {
  const pool = await openPool(url, 1)
  try {
    await migrateFiles(fromPg(pool), guarded ? ownFiles() : weakenedFiles('guard'))
    await pool.query(tables)
    const lines = Array.from({ length: keys }, (_, sku) => ({
      sku: String(sku),
      quantity: opening,
    }))
    const stock = createHoldfast(fromPg(pool)).stock({ name: books.stock })
    await stock.receive(lines, { externalId: 'opening' })
  } finally {
    await pool.end()
  }
}

interface Seen {
  readonly mostClients: number
  readonly mostWaiting: number
  readonly mostServers: number
  readonly serverBytes: number
}

/** Looks at the pooler and at the server's memory until told to stop. */
async function watch(
  server: PostgresServer,
  pooler: PgBouncer,
  signal: AbortSignal,
): Promise<Seen> {
  let seen: Seen = { mostClients: 0, mostWaiting: 0, mostServers: 0, serverBytes: 0 }
  await withClient(pooler.adminUrl, async (client) => {
    while (!signal.aborted) {
      const { rows } = await client.query<Record<string, string>>('SHOW POOLS')
      const sum = (...columns: string[]): number =>
        rows
          .filter((row) => row['database'] !== 'pgbouncer')
          .flatMap((row) => columns.map((column) => Number(row[column])))
          .reduce((total, count) => total + count, 0)
      seen = {
        mostClients: Math.max(seen.mostClients, sum('cl_active', 'cl_waiting')),
        mostWaiting: Math.max(seen.mostWaiting, sum('cl_waiting')),
        mostServers: Math.max(
          seen.mostServers,
          sum('sv_active', 'sv_idle', 'sv_used', 'sv_tested', 'sv_login'),
        ),
        serverBytes: Math.max(seen.serverBytes, (await serverBytes(server.pid)) ?? 0),
      }
      await pause(500, undefined, { signal }).catch(() => undefined)
    }
  })
  return seen
}
