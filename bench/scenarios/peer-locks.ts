import { randomUUID } from 'node:crypto'
import { startPostgres } from '@holdfast/testkit'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Effort } from '../harness/compare.ts'
import { type Meter, meterOf } from '../harness/meter.ts'
import { startTeam } from '../harness/team.ts'
import { latenciesOf } from '../peers/latencies.ts'
import type { LockReport, LockRound, LockSetup } from '../peers/lock-callers.ts'
import {
  fillWallets,
  installWallets,
  type Keeper,
  type KeeperName,
  keepers,
  type KeeperTerms,
  leftIn,
  type LockPlaces,
} from '../peers/lock-keepers.ts'
import { type Aftermath, killed, standStill } from '../peers/standing-still.ts'
import { startRedis } from '../peers/start-redis.ts'

const processes = 2
const callersOfProcess = 64
const connections = 16
/** Of the wallet that all callers want one from, with fewer in it than callers. */
const inWallet = 100
const wallets = 10_000
const endless = 2_000_000_000
const shortTtlMs = 1_000
/** All callers together ask no more often than this in a second. */
const triesPerSecond = 3_200

interface Plan {
  readonly rounds: number
  readonly effort: Effort
  readonly crowds: readonly number[]
  /** Of latencies; 0 leaves them out. */
  readonly latencyMs: number
  readonly lateRounds: number
}

const full: Plan = {
  rounds: 20,
  effort: { rounds: 8, sliceMs: 1_000, warmUps: 1, limitMs: 30_000 },
  crowds: [1, 64, 512],
  latencyMs: 4_000,
  lateRounds: 5,
}
const quick: Plan = {
  rounds: 1,
  effort: { rounds: 4, sliceMs: 200, warmUps: 1, limitMs: 3_000 },
  crowds: [64],
  latencyMs: 0,
  lateRounds: 1,
}

const inStorm: readonly KeeperName[] = ['guard', 'lease with fence', 'redlock', 'no lock']
const late: readonly KeeperName[] = [
  'guard',
  'guard, idle transactions end',
  'lease with fence',
  'redlock',
  'lease without fence',
]
const contests = [
  ['guard_vs_redlock', 'guard'],
  ['lease_vs_redlock', 'lease with fence'],
] as const

/** So that a crowd does not spend the machine on asking. */
function termsFor(callers: number, ttlMs = 30_000): KeeperTerms {
  return { connections, ttlMs, pauseMs: Math.max(20, (callers * 1_000) / triesPerSecond) }
}

export const peerLocks: BenchScenario = {
  about: 'the same check-then-write under our guard, our lease with its fence, and redlock',
  method:
    'Servers and clients on one machine, fsync on, one Redis without persistence, ioredis, redlock 4.2. Everybody reads a balance in PostgreSQL, checks it ' +
    `and writes what is left, two statements by pg. Correctness: ${processes} processes of ${callersOfProcess} callers, released together, each want one of ` +
    `${inWallet}; "over" is what was granted above that, "lost" what was granted and is not missing from the balance, "no lock" the control. Standing still: a holder is stopped ` +
    `(SIGSTOP) between check and write, with one in the wallet, for ${3 * shortTtlMs} ms or until the next one is done; locks and leases last ${shortTtlMs} ms. Killed: SIGKILL at the same place. ` +
    '"lease without fence" is the control: any lock that ends by itself. Throughput: one process, 64 callers unless the name says another number, ' +
    `${connections} connections to PostgreSQL and one to Redis, slices in turn, by calls a second and by time of processors (_cpu) of client, PostgreSQL and Redis; ` +
    `hot: one wallet; spread: ${wallets.toLocaleString('en')}. Who has to ask again (leases, redlock) pauses 20 ms in a crowd of 64 and 160 ms in one of 512, not the defaults of 500 ms and 200 ms, ` +
    'so that all together ask 3,200 times a second; nobody gives up. The guard waits in its process and in PostgreSQL. With --quick only with 64 callers, without latencies.',
  async run({ quick: short, progress }) {
    const plan = short ? quick : full
    progress('starting PostgreSQL and Redis')
    await using server = await startPostgres({ settings: { fsync: 'on' } })
    await using redis = await startRedis()
    if (redis === undefined)
      return { comparisons: [], method: 'There is no redis-server here: nothing was measured.' }
    const places: LockPlaces = {
      url: await server.createDatabase('locks'),
      redisPort: redis.port,
    }
    await installWallets(places.url)
    const facts: FactTable[] = [
      await correctness(places, plan.rounds, progress),
      await lateHolders(places, plan.lateRounds, progress),
    ]
    const meter = meterOf({ postmaster: server.pid, redis: redis.pid })
    const comparisons = await throughput(places, plan, meter, progress)
    if (plan.latencyMs > 0) facts.push(await latencyTable(places, plan, progress))
    return { comparisons, facts }
  },
}

async function correctness(
  places: LockPlaces,
  rounds: number,
  progress: (text: string) => void,
): Promise<FactTable> {
  const callers = processes * callersOfProcess
  const terms = termsFor(callers)
  await using team = await startTeam<LockSetup, LockRound, LockReport>(
    new URL('../peers/lock-callers.ts', import.meta.url),
    processes,
    { places, callers: callersOfProcess, terms },
  )
  const rows: string[][] = []
  for (const keeper of inStorm) {
    progress(`correctness: ${keeper}`)
    let [over, lost, errors] = [0, 0, 0]
    for (let round = 0; round < rounds; round += 1) {
      const [wallet, warmUp] = [randomUUID(), randomUUID()]
      await fillWallets(places.url, [wallet, warmUp], inWallet)
      const reports = await team.round({ keeper, wallet, warmUp })
      const granted = reports.reduce((sum, report) => sum + report.granted, 0)
      const failures = reports.flatMap((report) => report.errors)
      over += Math.max(0, granted - inWallet)
      lost += granted - (inWallet - (await leftIn(places.url, wallet)))
      errors += failures.length
      for (const failure of new Set(failures)) progress(`${keeper}: ${failure}`)
    }
    rows.push([keeper, String(over), String(lost), String(errors)])
  }
  return {
    title: `Correctness, ${rounds} rounds each: ${callers} callers of ${processes} processes want one of ${inWallet}:`,
    columns: ['', 'granted over', 'updates lost', 'errors'],
    rows,
  }
}

async function lateHolders(
  places: LockPlaces,
  rounds: number,
  progress: (text: string) => void,
): Promise<FactTable> {
  const terms = termsFor(1, shortTtlMs)
  const rows: string[][] = []
  for (const name of late) {
    progress(`standing still and killed: ${name}`)
    const stopped: Aftermath[] = []
    const dead: Aftermath[] = []
    for (let round = 0; round < rounds; round += 1) {
      stopped.push(await standStill({ places, terms, name }))
      dead.push(await killed({ places, terms, name }))
    }
    const over = stopped.reduce((sum, { granted }) => sum + Math.max(0, granted - 1), 0)
    const wrong = dead.filter(({ granted, left }) => granted + left !== 1).length
    rows.push([
      name,
      String(over),
      [...new Set(stopped.map(({ holder }) => holder))].join('; '),
      seconds(stopped),
      seconds(dead),
      String(wrong),
    ])
  }
  return {
    title: `A holder that stands still or is killed between check and write, ${rounds} times each, one in the wallet, locks and leases of ${shortTtlMs} ms; seconds until the next one is in, least to most:`,
    columns: [
      '',
      'overspent',
      'the write of the holder that woke up',
      'stands still: next in after, s',
      'SIGKILL: next in after, s',
      'lost after SIGKILL',
    ],
    rows,
  }
}

function seconds(all: readonly Aftermath[]): string {
  const sorted = all.map(({ nextInMs }) => nextInMs / 1_000).toSorted((a, b) => a - b)
  const [least = 0, most = 0] = [sorted[0], sorted.at(-1)]
  return all.length === 1 ? least.toFixed(2) : `${least.toFixed(2)}–${most.toFixed(2)}`
}

const kinds = [
  ['hot', 'one wallet'],
  ['spread', `${wallets.toLocaleString('en')} wallets`],
] as const

/** Of either kind, in wallets that are never empty. */
async function walletsOf(places: LockPlaces): Promise<Record<'hot' | 'spread', () => string>> {
  const run = randomUUID()
  const names = Array.from({ length: wallets }, (_, at) => `${run}-${at}`)
  await fillWallets(places.url, [run, ...names], endless)
  return { hot: () => run, spread: () => `${run}-${Math.floor(Math.random() * wallets)}` }
}

async function throughput(
  places: LockPlaces,
  { effort, crowds }: Plan,
  meter: Meter | undefined,
  progress: (text: string) => void,
): Promise<Comparison[]> {
  const walletOf = await walletsOf(places)
  const comparisons: Comparison[] = []
  for (const workers of crowds) {
    const terms = termsFor(workers)
    await using their = await keepers.redlock(places, terms)
    for (const [name, ourName] of contests) {
      await using our = await keepers[ourName](places, terms)
      for (const [kind, label] of kinds) {
        const side = (keeperName: KeeperName, keeper: Keeper) => ({
          label: `${keeperName}, ${label}`,
          operation: () => keeper.spend(walletOf[kind]()),
        })
        comparisons.push(
          ...(await compare(
            {
              name: `${name}_${kind}${workers === 64 ? '' : `_${workers}`}`,
              workers,
              measured: side(ourName, our),
              baseline: side('redlock', their),
            },
            effort,
            progress,
            meter,
          )),
        )
      }
    }
  }
  return comparisons
}

async function latencyTable(
  places: LockPlaces,
  { crowds, latencyMs }: Plan,
  progress: (text: string) => void,
): Promise<FactTable> {
  const walletOf = await walletsOf(places)
  const rows: string[][] = []
  for (const name of ['guard', 'lease with fence', 'redlock'] as const) {
    for (const callers of crowds) {
      progress(`latency: ${name}, ${callers} callers`)
      await using keeper = await keepers[name](places, termsFor(callers))
      const cells: string[] = []
      for (const [kind] of kinds) {
        const spend = (): Promise<unknown> => keeper.spend(walletOf[kind]())
        const { p50Ms, p99Ms } = await latenciesOf(spend, { callers, ms: latencyMs })
        cells.push(p50Ms.toFixed(1), p99Ms.toFixed(1))
      }
      rows.push([name, String(callers), ...cells])
    }
  }
  return {
    title: 'Milliseconds of a call:',
    columns: ['', 'callers', 'one wallet, p50', 'p99', '10,000 wallets, p50', 'p99'],
    rows,
  }
}
