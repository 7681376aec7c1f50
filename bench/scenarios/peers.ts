import { randomUUID } from 'node:crypto'
import { startPostgres } from '@holdfast/testkit'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Effort } from '../harness/compare.ts'
import { type Meter, meterOf } from '../harness/meter.ts'
import { startTeam, type Team } from '../harness/team.ts'
import { installLimiters, type Limiter, type LimiterName, limiters } from '../peers/limiters.ts'
import type { PeerReport, PeerRound, PeerSetup } from '../peers/peer-callers.ts'

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
}

const full: Plan = { rounds: 20, effort: { rounds: 12, sliceMs: 1_000 }, keys: 10_000 }
const quick: Plan = { rounds: 2, effort: { rounds: 4, sliceMs: 250, warmUps: 1 }, keys: 500 }

export const peers: BenchScenario = {
  about: 'the same quota by us and by rate-limiter-flexible, on the same clients',
  method:
    'Server and clients on one machine, fsync on. Correctness: per round a fresh key with a limit of 300 points a month; ' +
    `${processes} processes of ${callers} callers, released together, ask for more than there is. "over" is what was granted ` +
    'above the limit; "lost" is what was not granted although it was there: a call for one more point is made at the ' +
    'end, and if it is refused, what is left of the limit is out of reach. "same id twice" is what 50 calls of one point took when each was ' +
    `sent twice, as after a lost answer. Throughput: one process, ${callers} callers, ${connections} connections, slices in turn, the median of ` +
    'the ratios with p10 and p90; spread: 10,000 keys (500 with --quick), all used before. We keep a movement and an operation id per call; they keep one counter per key.',
  async run({ quick: short, progress }) {
    const plan = short ? quick : full
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { fsync: 'on' } })
    const url = await server.createDatabase('peers')
    const meter = meterOf({ postmaster: server.pid })
    await installLimiters(url)
    const facts: FactTable[] = []
    {
      await using team = await startTeam<PeerSetup, PeerRound, PeerReport>(
        new URL('../peers/peer-callers.ts', import.meta.url),
        processes,
        { url, callers, connections, limit },
      )
      facts.push(await correctness(team, url, plan.rounds, progress))
    }
    const comparisons: Comparison[] = []
    for (const client of ['PostgreSQL', 'Prisma', 'Drizzle'] as const) {
      comparisons.push(...(await throughput({ url, meter }, client, plan, progress)))
    }
    facts.push(throughputTable(comparisons))
    return { comparisons, facts }
  },
}

function throughputTable(comparisons: readonly Comparison[]): FactTable {
  return {
    title: 'Throughput, ours divided by theirs:',
    columns: ['', 'median', 'p10', 'p90'],
    rows: comparisons.map(({ name, ratio: { median, p10, p90 } }) => [
      name,
      ...[median, p10, p90].map((value) => value.toFixed(2)),
    ]),
  }
}

async function correctness(
  team: Team<PeerRound, PeerReport>,
  url: string,
  rounds: number,
  progress: (text: string) => void,
): Promise<FactTable> {
  const rows: string[][] = []
  for (const name of names) {
    progress(`correctness: ${name}`)
    await using observer = await limiters[name](url, limit, 1)
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

async function throughput(
  { url, meter }: { readonly url: string; readonly meter: Meter | undefined },
  client: 'PostgreSQL' | 'Prisma' | 'Drizzle',
  { effort, keys }: Plan,
  progress: (text: string) => void,
): Promise<Comparison[]> {
  const [ourName, theirName] = names.filter(
    (name) =>
      name.endsWith(client === 'PostgreSQL' ? 'pg' : client) ||
      name.endsWith(`flexible, ${client}`),
  )
  if (ourName === undefined || theirName === undefined) throw new Error(`nobody uses ${client}`)
  await using our = await limiters[ourName](url, noLimit, connections)
  await using their = await limiters[theirName](url, noLimit, connections)
  const comparisons: Comparison[] = []
  const run = randomUUID()
  // Every key has been used before: what its first use costs is not what we measure.
  for (const limiter of [our, their]) {
    const all = Array.from({ length: keys }, (_, key) => `${run}-${key}`)
    const use = async (): Promise<void> => {
      for (let key = all.pop(); key !== undefined; key = all.pop()) await limiter.consume(key, 1)
    }
    await Promise.all(Array.from({ length: callers }, use))
  }
  for (const [what, label, key] of [
    ['hot', 'one key', () => run],
    [
      'spread',
      `${keys.toLocaleString('en')} keys`,
      () => `${run}-${Math.floor(Math.random() * keys)}`,
    ],
  ] as const) {
    const side = (name: string, limiter: Limiter) => ({
      label: `${name}, ${label}`,
      operation: () => limiter.consume(key(), 1),
    })
    comparisons.push(
      ...(await compare(
        {
          name: `${what}_vs_flexible_${client.toLowerCase()}`,
          workers: callers,
          measured: side(ourName, our),
          baseline: side(theirName, their),
        },
        effort,
        progress,
        meter,
      )),
    )
  }
  return comparisons
}
