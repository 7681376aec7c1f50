import { randomUUID } from 'node:crypto'
import { startPostgres, type PostgresServer } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import type { SessionDriver } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { initShards, shardedDriver } from '../../packages/holdfast/src/shards/index.ts'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import {
  type Comparison,
  type Contest,
  compare,
  type Effort,
  type Side,
} from '../harness/compare.ts'
import { openPool } from '../harness/open-pool.ts'
import { limitProcessor } from '../harness/processor-share.ts'
import { meterOf } from '../harness/meter.ts'
import { processorSeconds } from '../harness/processor-seconds.ts'
import { book, installLedger, limit } from '../ledger/open-ledger.ts'

const names = ['a', 'b', 'c', 'd'] as const
const keys = 20_000
/** Callers for each server, each with as many operations at once as go into one statement. */
const callersEach = 4
/** Of one processor, for each server: so little that the servers and not the client are what is short. */
const share = 0.08
const guardWorkers = 8
const inOneStatement = 64

const full = { rounds: 20, sliceMs: 1_000 } satisfies Effort
const quick = { rounds: 4, sliceMs: 300, warmUps: 1 } satisfies Effort

export const shards: BenchScenario = {
  about: 'what routing costs, and what four servers carry against one',
  method:
    'routed: one server, one pool, the same tables; the measured side goes through shardedDriver with the map ' +
    'and the check on the server, the baseline through the plain driver; ' +
    `2 callers, each with ${inOneStatement} operations at once, which go in one statement (routed_vs_single; the rates ` +
    'are of statements), the same one ' +
    `operation a statement, ${guardWorkers} at a time (routed_vs_single_statement), and ${guardWorkers} guards with an ` +
    'empty body at a time (routed_vs_single_guard). ' +
    'two, four: four servers, each in a control group of its own with a quota of ' +
    `${share * 100} % of one processor (its sessions, WAL writer and vacuum included); one client process without a ` +
    `quota and with the same driver on both sides: for each server ${callersEach} callers with ${inOneStatement} operations at ` +
    'once, on keys of its buckets; for all four, for two, and for one of them, which ones changes from slice to ' +
    'slice. The table says how much of a processor each side used, so that a reader can see who was the limit. fsync is off on all of ' +
    'them: four servers would have four disks, and here is one.',
  async run({ quick: short, progress }) {
    const effort = short ? quick : full
    const comparisons: Comparison[] = []
    progress('starting four PostgreSQL servers and loading accounts')
    await using ground = await startServers()
    await load(ground)

    const facts = await comparedInNumber(ground, effort, comparisons, progress)
    progress('routing on one server')
    const meter = meterOf({ postmaster: ground.servers[0]?.pid ?? 0 })
    for (const contest of routedContests(ground))
      comparisons.push(...(await compare(contest, effort, progress, meter)))
    return { comparisons, facts }
  },
}

/**
 * Two and four servers against one. Before the rest, which only burdens the first of them; and which one or two they are
 * changes from slice to slice, so that no server is compared with itself when it was younger.
 */
async function comparedInNumber(
  { servers, hf, keysOf }: Ground,
  effort: Effort,
  comparisons: Comparison[],
  progress: (text: string) => void,
): Promise<FactTable[]> {
  const limits = names.map((name, at) =>
    limitProcessor(name, servers[at]?.processes() ?? [], share),
  )
  try {
    if (limits.some((each) => each === undefined)) {
      progress('processors cannot be shared out here (no control group): two and four are left out')
      return []
    }
    const usage = new Usage(servers)
    for (const [name, bar, label, count] of [
      ['two_vs_one', 1.8, 'two servers', 2],
      ['four_vs_one', 3.6, 'four servers', 4],
    ] as const) {
      const measured = crowd(label, hf, taking(keysOf, count), usage)
      const baseline = crowd('one of them', hf, taking(keysOf, 1), usage)
      comparisons.push(
        ...(await compare({ name, bar, workers: 1, measured, baseline }, effort, progress)),
      )
    }
    return [usage.table()]
  } finally {
    for (const each of limits) each?.lift()
  }
}

/** So many of them, each time the next ones. */
function taking<T>(all: readonly T[], count: number): () => readonly T[] {
  let next = 0
  return () => {
    const from = next % all.length
    next += count
    return [...all, ...all].slice(from, from + count)
  }
}

interface Ground extends AsyncDisposable {
  readonly servers: readonly PostgresServer[]
  readonly drivers: Readonly<Record<string, SessionDriver<PoolClient>>>
  readonly hf: ReturnType<typeof createHoldfast<PoolClient>>
  /** Keys in buckets of each server. */
  readonly keysOf: readonly (readonly string[])[]
  /** One of the first server. */
  only(): string
}

async function startServers(): Promise<Ground> {
  const settings = { max_connections: '50', shared_buffers: '128MB', max_wal_size: '2GB' }
  const servers = await Promise.all(names.map(() => startPostgres({ settings })))
  const pools: Pool[] = []
  const drivers: Record<string, SessionDriver<PoolClient>> = {}
  for (const [at, server] of servers.entries()) {
    const url = await server.createDatabase('shards')
    await installLedger(url)
    const pool = await openPool(url, guardWorkers)
    pools.push(pool)
    drivers[names[at] as string] = fromPg(pool)
  }
  await initShards(drivers)
  const keysOf = names.map((_, at) =>
    Array.from({ length: keys }, (__, key) => keyOf(key)).filter(
      (key) => bucketOf(key) % names.length === at,
    ),
  )
  return {
    servers,
    drivers,
    hf: createHoldfast(shardedDriver(drivers)),
    keysOf,
    only: () => oneOf(keysOf[0] ?? []),
    async [Symbol.asyncDispose]() {
      for (const pool of pools) await pool.end()
      await Promise.all(servers.map((server) => server.stop('immediate')))
    },
  }
}

function keyOf(at: number): string {
  return `key-${at}`
}

function oneOf(some: readonly string[]): string {
  return some[Math.floor(Math.random() * some.length)] as string
}

function quotaOf(hf: Ground['hf']): (key: string) => Promise<unknown> {
  const quota = hf.quota({ name: book, limit, per: 'lifetime' })
  return (key) => quota.consume(key, 1, { operationId: randomUUID() })
}

/** Opens every account, so that no slice pays for it. */
async function load({ hf, drivers, only }: Ground): Promise<void> {
  const consume = quotaOf(hf)
  const batch = 2_000
  for (let from = 0; from < keys; from += batch) {
    await Promise.all(Array.from({ length: batch }, (_, at) => consume(keyOf(from + at))))
  }
  const plain = quotaOf(createHoldfast(drivers[names[0]] as SessionDriver<PoolClient>))
  await plain(only())
}

/** The first server, through the map and without it. Only keys that it has. */
function routedContests({ hf, drivers, only }: Ground): Contest[] {
  const plain = drivers[names[0]] as SessionDriver<PoolClient>
  const single = createHoldfast(plain)
  const oneByOne = { ledger: { coalesce: false } }
  const contest = (
    name: string,
    bar: number | undefined,
    workers: number,
    operation: (on: Ground['hf']) => () => Promise<unknown>,
    [routed, direct]: readonly [Ground['hf'], Ground['hf']] = [hf, single],
  ): Contest => ({
    name,
    ...(bar === undefined ? {} : { bar }),
    workers,
    measured: { label: 'through the map, checked by the server', operation: operation(routed) },
    baseline: { label: 'the plain driver', operation: operation(direct) },
  })
  const consuming = (on: Ground['hf']): (() => Promise<unknown>) => {
    const consume = quotaOf(on)
    return () => consume(only())
  }
  // As many as go into one statement, at once: with free callers the sizes of statements depend on the order in
  // which promises resolve, and that would be measured instead.
  const together = (on: Ground['hf']): (() => Promise<unknown>) => {
    const one = consuming(on)
    return () => Promise.all(Array.from({ length: inOneStatement }, one))
  }
  const guarding =
    (on: Ground['hf']): (() => Promise<unknown>) =>
    () =>
      on.guard(lockOf(only()), async () => undefined)
  return [
    contest('routed_vs_single', 0.97, 2, together),
    contest('routed_vs_single_statement', undefined, guardWorkers, consuming, [
      createHoldfast(shardedDriver(drivers), oneByOne),
      createHoldfast(plain, oneByOne),
    ]),
    contest('routed_vs_single_guard', undefined, guardWorkers, guarding),
  ]
}

function lockOf(scope: string): ReturnType<typeof lockKey> {
  return { ...lockKey('bench', scope), scope }
}

/** Callers of a number of servers, and what it cost while they called. */
function crowd(label: string, hf: Ground['hf'], take: () => Ground['keysOf'], usage: Usage): Side {
  const consume = quotaOf(hf)
  return {
    label,
    async measure(sliceMs) {
      const keysOf = take()
      const stop = usage.start(label)
      let operations = 0
      const began = performance.now()
      const until = began + sliceMs
      const call = async (own: readonly string[]): Promise<void> => {
        while (performance.now() < until) {
          await Promise.all(Array.from({ length: inOneStatement }, () => consume(oneOf(own))))
          operations += inOneStatement
        }
      }
      await Promise.all(
        keysOf.flatMap((own) => Array.from({ length: callersEach }, () => call(own))),
      )
      const seconds = (performance.now() - began) / 1_000
      stop(seconds)
      return operations / seconds
    },
  }
}

/** How much of a processor everybody used. */
class Usage {
  readonly #meters: readonly NonNullable<ReturnType<typeof processorSeconds>>[]
  readonly #used = new Map<string, { seconds: number; client: number; servers: number[] }>()

  constructor(servers: readonly PostgresServer[]) {
    this.#meters = servers.flatMap(({ pid }) => processorSeconds(pid) ?? [])
  }

  start(side: string): (seconds: number) => void {
    const servers = this.#meters.map((meter) => meter.server())
    const client = this.#meters[0]?.client() ?? 0
    return (seconds) => {
      const sum = this.#used.get(side) ?? { seconds: 0, client: 0, servers: servers.map(() => 0) }
      this.#used.set(side, {
        seconds: sum.seconds + seconds,
        client: sum.client + (this.#meters[0]?.client() ?? 0) - client,
        servers: this.#meters.map(
          (meter, at) => (sum.servers[at] ?? 0) + meter.server() - (servers[at] ?? 0),
        ),
      })
    }
  }

  table(): FactTable {
    const percent = (seconds: number, of: number): string => `${Math.round((100 * seconds) / of)} %`
    return {
      title: 'Share of one processor that was used',
      columns: ['side', 'client', ...names.map((name) => `server ${name}`)],
      rows: [...this.#used].map(([side, { seconds, client, servers }]) => [
        side,
        percent(client, seconds),
        ...servers.map((each) => percent(each, seconds)),
      ]),
    }
  }
}
