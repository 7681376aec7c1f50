import { randomUUID } from 'node:crypto'
import { startPostgres } from '@holdfast/testkit'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Effort } from '../harness/compare.ts'
import { type Meter, meterOf } from '../harness/meter.ts'
import { startTeam, type Team } from '../harness/team.ts'
import { latenciesOf } from '../peers/latencies.ts'
import {
  installLimiters,
  type Limiter,
  type LimiterName,
  limiters,
  type Places,
} from '../peers/limiters.ts'
import type { PeerReport, PeerRound, PeerSetup } from '../peers/peer-callers.ts'
import { startRedis } from '../peers/start-redis.ts'

const processes = 2
const callers = 64
const connections = 16
const limit = 300
/** What a 32-bit counter can take without being reached. */
const noLimit = 2_000_000_000

const names = Object.keys(limiters) as LimiterName[]

interface Plan {
  readonly rounds: number
  readonly effort: Effort
  readonly keys: number
  /** Calls of each side before it is measured: code that was never run is slow. */
  readonly warmUps: number
  /** Other numbers of callers, for contests that have more than one. */
  readonly otherCallers: readonly number[]
  readonly latencyMs: number
}

const full: Plan = {
  rounds: 20,
  effort: { rounds: 12, sliceMs: 1_000 },
  keys: 10_000,
  warmUps: 50_000,
  otherCallers: [1, 512],
  latencyMs: 3_000,
}
const quick: Plan = {
  rounds: 1,
  effort: { rounds: 4, sliceMs: 150, warmUps: 1, limitMs: 2_500 },
  keys: 10_000,
  warmUps: 10_000,
  otherCallers: [],
  latencyMs: 0,
}

/** Two limiters that are compared, and what is promised of their costs. */
interface Pair {
  readonly name: string
  readonly measured: LimiterName
  readonly baseline: LimiterName
  /** By processor time, with 64 callers. */
  readonly bars?: { readonly hot?: number; readonly spread?: number }
  /** Also with other numbers of callers. */
  readonly everyCrowd?: true
}

const pairs: readonly Pair[] = [
  {
    name: 'lean_vs_flexible_pg',
    measured: 'rate limit, pg',
    baseline: 'rate-limiter-flexible, PostgreSQL',
    bars: { hot: 50, spread: 6 },
    everyCrowd: true,
  },
  {
    name: 'lean_vs_flexible_redis',
    measured: 'rate limit, pg',
    baseline: 'rate-limiter-flexible, Redis',
    bars: { hot: 5, spread: 1 },
    everyCrowd: true,
  },
  {
    name: 'lean_vs_flexible_prisma',
    measured: 'rate limit, Prisma',
    baseline: 'rate-limiter-flexible, Prisma',
  },
  {
    name: 'lean_vs_flexible_drizzle',
    measured: 'rate limit, Drizzle',
    baseline: 'rate-limiter-flexible, Drizzle',
  },
  {
    name: 'ledger_vs_flexible_pg',
    measured: 'quota, pg',
    baseline: 'rate-limiter-flexible, PostgreSQL',
    bars: { spread: 1.5 },
    everyCrowd: true,
  },
  {
    name: 'ledger_vs_flexible_prisma',
    measured: 'quota, Prisma',
    baseline: 'rate-limiter-flexible, Prisma',
  },
  {
    name: 'ledger_vs_flexible_drizzle',
    measured: 'quota, Drizzle',
    baseline: 'rate-limiter-flexible, Drizzle',
  },
]

export const peers: BenchScenario = {
  about:
    'the same limit by our rate limit, our quota and rate-limiter-flexible, on the same clients',
  method:
    'Servers and clients on one machine, fsync on, Redis without persistence. Correctness: per round a fresh key with a limit of 300 points a month; ' +
    `${processes} processes of ${callers} callers, released together, ask for more than there is. "over" is what was granted ` +
    'above the limit; "lost" is what was not granted although it was there: a call for one more point is made at the ' +
    'end, and if it is refused, what is left of the limit is out of reach. "same id twice" is what 50 calls of one point took when each was ' +
    `sent twice, as after a lost answer. Throughput: one process, ${callers} callers unless the name says another number, ${connections} connections ` +
    '(Redis: one, on which calls follow each other), slices in turn, the median of the ratios with p10 and p90, by calls a second and by time of ' +
    'processors (_cpu) of client, PostgreSQL and Redis; hot: one key; spread: 10,000 keys, all used before. A quota keeps a movement and an operation ' +
    'id per call; the others keep one counter per key. With --quick only the limiters on pg and Redis are compared, without latencies.',
  async run({ quick: short, progress }) {
    const plan = short ? quick : full
    progress('starting PostgreSQL and Redis')
    await using server = await startPostgres({ settings: { fsync: 'on' } })
    await using redis = await startRedis()
    if (redis === undefined) progress('there is no redis-server: nothing is compared with it')
    const places: Places = { url: await server.createDatabase('peers'), redisPort: redis?.port }
    const meter = meterOf({ postmaster: server.pid, redis: redis?.pid })
    await installLimiters(places.url)
    const isThere = (name: string): boolean => redis !== undefined || !name.endsWith('Redis')
    const facts: FactTable[] = []
    {
      await using team = await startTeam<PeerSetup, PeerRound, PeerReport>(
        new URL('../peers/peer-callers.ts', import.meta.url),
        processes,
        { places, callers, connections, limit },
      )
      facts.push(await correctness(team, places, names.filter(isThere), plan.rounds, progress))
    }
    const comparisons: Comparison[] = []
    const latencies = new Map<LimiterName, string[]>()
    const chosen = pairs.filter((pair) => isThere(pair.baseline))
    for (const pair of short ? chosen.filter((each) => each.everyCrowd === true) : chosen) {
      comparisons.push(...(await throughput({ places, meter, latencies }, pair, plan, progress)))
    }
    facts.push(throughputTable(comparisons))
    if (latencies.size > 0) facts.push(latencyTable(latencies))
    return { comparisons, facts }
  },
}

function throughputTable(comparisons: readonly Comparison[]): FactTable {
  return {
    title: 'The baseline divided by ours (_cpu), or our calls a second divided by its:',
    columns: ['', 'median', 'p10', 'p90', 'measured', 'baseline'],
    rows: comparisons.map(({ name, ratio: { median, p10, p90 }, sides }) => [
      name,
      ...[median, p10, p90].map((value) => value.toFixed(2)),
      ...sides.map(({ value }) => value),
    ]),
  }
}

function latencyTable(latencies: ReadonlyMap<LimiterName, readonly string[]>): FactTable {
  return {
    title: `Milliseconds of a call with ${callers} callers:`,
    columns: ['', 'one key, p50', 'p99', '10,000 keys, p50', 'p99'],
    rows: [...latencies].map(([name, values]) => [name, ...values]),
  }
}

async function correctness(
  team: Team<PeerRound, PeerReport>,
  places: Places,
  compared: readonly LimiterName[],
  rounds: number,
  progress: (text: string) => void,
): Promise<FactTable> {
  const rows: string[][] = []
  for (const name of compared) {
    progress(`correctness: ${name}`)
    await using observer = await limiters[name](places, limit, 1)
    const same = await storm(team, observer, name, rounds, 1)
    const mixed = await storm(team, observer, name, rounds, 9)
    rows.push([
      name,
      String(same.over),
      String(mixed.over),
      String(mixed.lost),
      String(same.errors.length + mixed.errors.length),
      String(await sentTwice(observer)),
    ])
    for (const error of new Set([...same.errors, ...mixed.errors])) progress(`${name}: ${error}`)
  }
  return {
    title:
      `Correctness, ${rounds} rounds each: points over the limit of ${limit} with calls of one point and of 1 to 9, ` +
      'points lost, errors, and points taken by 50 calls that were sent twice:',
    columns: ['', 'over, cost 1', 'over, cost 1–9', 'lost, cost 1–9', 'errors', 'same id twice'],
    rows,
  }
}

async function storm(
  team: Team<PeerRound, PeerReport>,
  observer: Limiter,
  limiter: LimiterName,
  rounds: number,
  dearest: number,
): Promise<{ over: number; lost: number; errors: string[] }> {
  let [over, lost] = [0, 0]
  const errors: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const key = randomUUID()
    const reports = await team.round({ limiter, key, dearest, callsPerCaller: 4 })
    const granted = reports.reduce((sum, report) => sum + report.granted, 0)
    errors.push(...reports.flatMap((report) => report.errors))
    over += Math.max(0, granted - limit)
    const left = limit - granted
    if (left > 0 && !(await observer.consume(key, 1))) lost += left
  }
  return { over, lost, errors }
}

/** How many points 50 calls took, each sent a second time under the same id. */
async function sentTwice(limiter: Limiter): Promise<number> {
  const key = randomUUID()
  for (let call = 0; call < 50; call += 1) {
    const id = randomUUID()
    await limiter.consume(key, 1, id)
    await limiter.consume(key, 1, id)
  }
  // What is left tells what was taken.
  let left = 0
  while (left < limit && (await limiter.consume(key, 1))) left += 1
  return limit - left
}

interface Ground {
  readonly places: Places
  readonly meter: Meter | undefined
  /** What was found out about each limiter so far. */
  readonly latencies: Map<LimiterName, string[]>
}

async function throughput(
  { places, meter, latencies }: Ground,
  { name, measured: ourName, baseline: theirName, bars, everyCrowd }: Pair,
  { effort, keys, warmUps, otherCallers, latencyMs }: Plan,
  progress: (text: string) => void,
): Promise<Comparison[]> {
  await using our = await limiters[ourName](places, noLimit, connections)
  await using their = await limiters[theirName](places, noLimit, connections)
  const comparisons: Comparison[] = []
  const run = randomUUID()
  const anyKey = (): string => `${run}-${Math.floor(Math.random() * keys)}`
  for (const limiter of [our, their]) await warmUp(limiter, run, keys, warmUps)
  for (const [kind, label, key] of [
    ['hot', 'one key', () => run],
    ['spread', `${keys.toLocaleString('en')} keys`, anyKey],
  ] as const) {
    const side = (limiterName: string, limiter: Limiter) => ({
      label: `${limiterName}, ${label}`,
      operation: () => limiter.consume(key(), 1),
    })
    const bar = bars?.[kind]
    for (const workers of everyCrowd === true ? [callers, ...otherCallers] : [callers]) {
      const isUsual = workers === callers
      comparisons.push(
        ...(await compare(
          {
            name: `${name}_${kind}${isUsual ? '' : `_${workers}`}`,
            workers,
            measured: side(ourName, our),
            baseline: side(theirName, their),
            ...(isUsual && bar !== undefined ? { barByCost: bar } : {}),
          },
          effort,
          progress,
          meter,
        )),
      )
    }
    for (const [each, limiter] of [
      [ourName, our],
      [theirName, their],
    ] as const) {
      const known = latencies.get(each) ?? []
      if (latencyMs === 0 || known.length >= (kind === 'hot' ? 2 : 4)) continue
      const { p50Ms, p99Ms } = await latenciesOf(() => limiter.consume(key(), 1), {
        callers,
        ms: latencyMs,
      })
      latencies.set(each, [...known, p50Ms.toFixed(1), p99Ms.toFixed(1)])
    }
  }
  return comparisons
}

/** Every key has been used before, and the code has run: what the first use costs is not what we measure. */
async function warmUp(limiter: Limiter, run: string, keys: number, most: number): Promise<void> {
  let left = Math.max(keys, most)
  const use = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await limiter.consume(`${run}-${left % keys}`, 1)
    }
  }
  await Promise.all(Array.from({ length: callers }, use))
}
