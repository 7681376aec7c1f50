import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { createMoves, initShards, type Moves } from '../../packages/holdfast/src/shards/index.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { checkHistories, type Primaries } from './shards-checks.ts'
import { keysIn } from './shards-cluster.ts'
import { effects } from './shards-model.ts'
import {
  type OutageCounts,
  type OutageOrder,
  type OutageSetup,
  queue,
} from './shards-outage-model.ts'
import { type Wire, wireTo } from './shards-wire.ts'

const names = ['north', 'south', 'east', 'west'] as const
/** The one that fails, and who gets its buckets. */
const [failing, heir] = ['north', 'south'] as const

/** For which it is silent, down, and back, each. */
const fullSeconds = 60
/** As long as that altogether, with the times in between and the control. */
const phases = 7
/** Each is measured in pieces, between times in which all are up: a machine is not equally fast for minutes. */
const pieceMs = 5_000
const leastThroughput = 0.9
/** In less time it is the first moment that is measured, in which nobody knows yet. */
const enoughSeconds = 10
const thinkMs = 60

interface OutageCluster extends Primaries, AsyncDisposable {
  readonly server: PostgresServer
  readonly wire: Wire
  readonly moves: Moves
}

/** Four primaries under load, of which one is silent, then down, then back from a backup of before a move. */
export const shardsOutage: StressScenario = {
  about: 'one of four primaries black-holed, down, and back from a backup, under load',
  async run({ seconds, progress }) {
    const phaseMs = 1_000 * (seconds === undefined ? fullSeconds : Math.max(2, seconds / phases))
    progress('starting four servers')
    await using cluster = await startCluster()
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-outage-'))
    try {
      const { violations, ratios, files, keys } = await attack(cluster, folder, phaseMs, progress)
      progress('checking')
      const checked = await checkHistories(cluster, keys, files)
      violations.push(...checked.violations)
      for (const [phase, ratio] of Object.entries(ratios)) {
        if (ratio < leastThroughput && phaseMs >= enoughSeconds * 1_000) {
          violations.push(`${phase}: the others had ${ratio.toFixed(2)} of their throughput`)
        }
      }
      progress('control: one after another')
      const controls = { one_after_another: await control(cluster, folder, phaseMs, progress) }
      const worst = Math.min(...Object.values(ratios))
      return {
        operations: checked.operations,
        violations,
        controls,
        ratios: { others_vs_all_up: worst },
        notes: [
          `${(phaseMs / 1_000).toFixed(0)} s each; the others kept, of what they do while all are up:`,
          ...Object.entries(ratios).map(([phase, ratio]) => `  ${phase}: ${ratio.toFixed(2)}`),
          `others_vs_all_up ${worst.toFixed(2)}`,
        ],
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

async function attack(
  cluster: OutageCluster,
  folder: string,
  phaseMs: number,
  progress: (text: string) => void,
): Promise<{
  violations: string[]
  ratios: Record<string, number>
  files: readonly string[]
  keys: readonly string[]
}> {
  const { server, wire, moves } = cluster
  const keys = keysOf('load')
  await using crew = await Crew.start(2, folder, { ...keys, urls: urlsOf(cluster), inTurn: false })
  const violations: string[] = []
  const pieces = Math.max(1, Math.round(phaseMs / pieceMs))
  const rate = async (what: string): Promise<Rates> => {
    const rates = await crew.during(phaseMs / pieces)
    progress(
      `${what}: ${rates.operations.toFixed(0)} operations/s, ${rates.jobs.toFixed(0)} jobs/s`,
    )
    return rates
  }
  const several = async (what: string, count: number): Promise<Rates[]> => {
    const all: Rates[] = []
    while (all.length < count) all.push(await rate(what))
    return all
  }
  /** Again and again, and all up in between. */
  const outage = async (
    what: string,
    begin: () => Promise<void>,
    end: () => Promise<void>,
  ): Promise<number> => {
    const [during, up] = [[] as Rates[], [await rate('all up')]]
    while (during.length < pieces) {
      await begin()
      during.push(await rate(what))
      await end()
      up.push(await rate('all up'))
    }
    // Those at the ends are beside one of the others, and those in between beside two.
    const between = [...up, ...up.slice(1, -1)]
    return kept(during, between)
  }
  // What is measured first is slow for other reasons.
  await crew.during(Math.min(phaseMs, 3_000))
  const silent = await outage(
    'one is silent',
    async () => wire.set('silent'),
    async () => wire.set('open'),
  )
  const down = await outage(
    'one is down',
    async () => {
      wire.set('down')
      await server.shutDown('fast')
    },
    async () => {
      await server.startAgain()
      wire.set('open')
    },
  )
  const backup = join(folder, 'backup')
  await server.shutDown('fast')
  copyFolder(server.dataDir, backup)
  await server.startAgain()
  progress('moving buckets away from it')
  await moves.move({ buckets: keys.moved.map(bucketOf), to: heir, tables: [effects] })
  const up = await several('all up', Math.ceil(pieces / 2))
  await server.shutDown('immediate')
  rmSync(server.dataDir, { recursive: true })
  copyFolder(backup, server.dataDir)
  await server.startAgain()
  const restored = await several('one is back from a backup', pieces)
  const status = await moves.status()
  if (status.stale.length + status.strays.length === 0) {
    violations.push('status says nothing of a primary that was restored to before a move')
  }
  await moves.repair({ tables: [effects] })
  const repaired = await moves.status()
  if (repaired.stale.length + repaired.strays.length + repaired.nobody.length > 0) {
    violations.push('repair has left something')
  }
  up.push(...(await several('all up', Math.ceil(pieces / 2))))
  await crew.ask({ noMoreJobs: true })
  violations.push(...(await drained(cluster, keys.others)))
  return {
    violations,
    ratios: { silent, down, restored: kept(restored, up) },
    files: crew.files,
    keys: [...keys.moved, ...keys.others],
  }
}

/** The same load, whose jobs are claimed from one primary after the other. */
async function control(
  cluster: OutageCluster,
  folder: string,
  phaseMs: number,
  progress: (text: string) => void,
): Promise<ControlOutcome> {
  const place = mkdtempSync(join(folder, 'control'))
  const setup = { ...keysOf('control'), urls: urlsOf(cluster), inTurn: true }
  await using crew = await Crew.start(1, place, setup)
  const shortMs = Math.min(phaseMs, 10_000)
  await crew.during(Math.min(shortMs, 2_000))
  const up = await crew.during(shortMs)
  cluster.wire.set('silent')
  const silent = await crew.during(shortMs)
  cluster.wire.set('open')
  progress(`control: ${up.jobs.toFixed(0)} jobs/s, then ${silent.jobs.toFixed(0)}`)
  return kept([silent], [up]) < leastThroughput ? 'caught' : 'missed'
}

interface Rates {
  readonly operations: number
  readonly jobs: number
}

/** Of the two sorts of work the one that lost more. */
function kept(during: readonly Rates[], up: readonly Rates[]): number {
  const mean = (all: readonly Rates[], of: keyof Rates): number =>
    all.reduce((sum, rates) => sum + rates[of], 0) / all.length
  return Math.min(
    mean(during, 'operations') / mean(up, 'operations'),
    mean(during, 'jobs') / mean(up, 'jobs'),
  )
}

/** Keys in buckets of their own, by the primary that has them at first. */
function keysOf(prefix: string): Pick<OutageSetup, 'moved' | 'failing' | 'others'> {
  const all = keysIn(200, prefix)
  const [its, others] = [
    all.filter((key) => bucketOf(key) % names.length === names.indexOf(failing)),
    all.filter((key) => bucketOf(key) % names.length !== names.indexOf(failing)),
  ]
  return { moved: its.slice(0, 6), failing: its.slice(6, 16), others: others.slice(0, 60) }
}

function urlsOf({ urls, wire }: OutageCluster): Record<string, string> {
  return { ...urls, [failing]: wire.url }
}

async function startCluster(): Promise<OutageCluster> {
  await using stack = new AsyncDisposableStack()
  const settings = { wal_level: 'logical', wal_retrieve_retry_interval: '200ms' }
  const servers = await Promise.all(names.map(() => startPostgres({ settings })))
  for (const server of servers) stack.use(server)
  const urls: Record<string, string> = {}
  const pools: Record<string, pg.Pool> = {}
  for (const [at, name] of names.entries()) {
    const url = await (servers[at] as PostgresServer).createDatabase(name)
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    pool.on('error', () => undefined)
    stack.defer(() => pool.end())
    await migrate(fromPg(pool))
    await pool.query(
      'CREATE TABLE effect (bucket smallint, id uuid, call uuid, PRIMARY KEY (bucket, id, call))',
    )
    ;[urls[name], pools[name]] = [url, pool]
  }
  const drivers = Object.fromEntries(names.map((name) => [name, fromPg(pools[name] as pg.Pool)]))
  await initShards(drivers)
  const moves = createMoves(
    Object.fromEntries(
      names.map((name) => [
        name,
        { driver: fromPg(pools[name] as pg.Pool), connection: urls[name] as string },
      ]),
    ),
  )
  const wire = await wireTo(urls[failing] as string)
  stack.use(wire)
  const keptUntilEnd = stack.move()
  const server = servers[names.indexOf(failing)] as PostgresServer
  return {
    server,
    wire,
    moves,
    urls,
    pools,
    [Symbol.asyncDispose]: () => keptUntilEnd.disposeAsync(),
  }
}

/** With its owner and its rights: the server is another user's. */
function copyFolder(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
}

/** Jobs of primaries that did not fail are done, all of them. */
async function drained({ pools }: OutageCluster, others: readonly string[]): Promise<string[]> {
  const buckets = others.map(bucketOf)
  const left = async (): Promise<number> => {
    let sum = 0
    for (const pool of Object.values(pools)) {
      const { rowCount } = await pool.query(
        'SELECT FROM holdfast.work WHERE queue = $1 AND bucket = ANY ($2)',
        [queue, buckets],
      )
      sum += rowCount ?? 0
    }
    return sum
  }
  for (let looks = 0; looks < 150; looks += 1) {
    if ((await left()) === 0) return []
    await after(200)
  }
  return [`${await left()} jobs were never done`]
}

/** Applications, and how much they do. */
class Crew implements AsyncDisposable {
  readonly files: string[] = []
  readonly #children: ChildProcess[] = []

  static async start(
    count: number,
    folder: string,
    setup: Omit<OutageSetup, 'file' | 'thinkMs'>,
  ): Promise<Crew> {
    const crew = new Crew()
    for (let at = 0; at < count; at += 1) {
      const file = join(folder, `app-${at}.jsonl`)
      writeFileSync(file, '')
      crew.files.push(file)
      const child = fork(new URL('shards-outage-app.ts', import.meta.url), { stdio: 'inherit' })
      crew.#children.push(child)
      child.send({ ...setup, thinkMs, file } satisfies OutageSetup)
      await once(child, 'message')
    }
    return crew
  }

  async ask(order: OutageOrder = {}): Promise<OutageCounts> {
    const all = await Promise.all(
      this.#children.map(async (child) => {
        child.send(order)
        const [counts] = (await once(child, 'message')) as [OutageCounts]
        return counts
      }),
    )
    return {
      operations: all.reduce((sum, { operations }) => sum + operations, 0),
      jobs: all.reduce((sum, { jobs }) => sum + jobs, 0),
    }
  }

  /** What they do in this time, per second. */
  async during(ms: number): Promise<Rates> {
    const [before, began] = [await this.ask(), performance.now()]
    await after(ms)
    const [now, tookMs] = [await this.ask(), performance.now() - began]
    return {
      operations: (1_000 * (now.operations - before.operations)) / tookMs,
      jobs: (1_000 * (now.jobs - before.jobs)) / tookMs,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
  }
}
