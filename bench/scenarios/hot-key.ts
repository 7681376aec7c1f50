import { setTimeout as pause } from 'node:timers/promises'
import { startPostgres } from '@holdfast/testkit'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Contest, type Effort } from '../harness/compare.ts'
import { latencyRatio } from '../harness/compare-latency.ts'
import { meterOf } from '../harness/meter.ts'
import { quantile, summarise } from '../harness/summary.ts'
import { startTeam } from '../harness/team.ts'
import {
  bystander,
  type Crowd,
  crowdSize,
  openCrowd,
  poolSize,
  type Wait,
} from './hot-key-crowd.ts'
import type { ProcessOrder } from './hot-key-process.ts'

interface Length {
  readonly rounds: number
  readonly idleMs: number
  readonly rushMs: number
  /** Without the queue, for comparison. */
  readonly plainMs: number
  readonly throughput: Effort
  readonly processesMs: number
}

const full: Length = {
  rounds: 5,
  idleMs: 3_000,
  rushMs: 10_000,
  plainMs: 2_000,
  throughput: { rounds: 30, sliceMs: 500 },
  processesMs: 5_000,
}
const quick: Length = {
  rounds: 4,
  idleMs: 300,
  rushMs: 800,
  plainMs: 300,
  throughput: { rounds: 12, sliceMs: 150, limitMs: 5_000 },
  processesMs: 600,
}

export const hotKey: BenchScenario = {
  about: 'whether one hot key stops anybody else',
  method:
    `Server and client on one machine, fsync on. One process, a pool of ${poolSize}, ${crowdSize} callers of one key with ` +
    'empty bodies, each again and again. The bystander sends SELECT 1 through the same pool, 1 to 5 ms after its ' +
    'last answer. Each round: nobody else, then the callers, then the callers without the queue; medians of the ' +
    'bystander per round. longest_vs_median: of all waits of a round, from the call to the body; in turns: by how ' +
    'many guards were let in meanwhile, which does not depend on how busy the machine is. queued_vs_plain: ' +
    'slices with and without the queue in turn, by time and by processor time of client and server.',
  async run({ quick: short, progress }) {
    const length = short ? quick : full
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { fsync: 'on', max_connections: '100' } })
    const url = await server.createDatabase('bench')
    const comparisons: Comparison[] = []
    const facts: FactTable[] = []
    {
      await using crowd = await openCrowd(url)
      comparisons.push(...(await passing(crowd, length, progress)))
      const meter = meterOf({ postmaster: server.pid })
      comparisons.push(...(await compare(throughput(crowd), length.throughput, progress, meter)))
    }
    progress('two processes')
    facts.push(await processes(url, length.processesMs))
    return { comparisons, facts }
  },
}

/** What the bystander and the callers themselves feel. */
async function passing(
  crowd: Crowd,
  { rounds, idleMs, rushMs, plainMs }: Length,
  progress: (text: string) => void,
): Promise<Comparison[]> {
  const medians = { idle: [] as number[], rush: [] as number[], plain: [] as number[] }
  const waits: Wait[][] = []
  // The first round warms up and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const idle = await bystander(crowd.pool, pause(idleMs))
    const rushing = crowd.rush(rushMs, true)
    const rush = await bystander(crowd.pool, rushing)
    const waited = await rushing
    const plain = await bystander(crowd.pool, crowd.rush(plainMs, false))
    progress(`bystander: round ${round} of ${rounds}`)
    if (round === 0) continue
    medians.idle.push(quantile(idle, 0.5))
    medians.rush.push(quantile(rush, 0.5))
    medians.plain.push(quantile(plain, 0.5))
    waits.push(waited)
  }
  const idle = { label: 'SELECT 1, nobody else', medians: medians.idle }
  return [
    latencyRatio(
      { name: 'bystander_vs_idle', bar: 2, barIs: 'at most' },
      { label: `SELECT 1 while ${crowdSize} callers want one key`, medians: medians.rush },
      idle,
    ),
    latencyRatio(
      { name: 'bystander_vs_idle_plain' },
      { label: 'the same without the queue', medians: medians.plain },
      idle,
    ),
    longest('longest_vs_median', waits, ({ ms }) => ms, 'ms'),
    longest('longest_vs_median_turns', waits, ({ turns }) => turns, 'turns'),
  ]
}

/** The longest wait against the median one, of each round. */
function longest(
  name: string,
  rounds: readonly (readonly Wait[])[],
  of: (wait: Wait) => number,
  unit: string,
): Comparison {
  const each = rounds.map((waits) => waits.map(of))
  const at = (q: number): number[] => each.map((values) => quantile(values, q))
  const medians = at(0.5)
  const middle = (values: readonly number[]): string =>
    `${quantile(values, 0.5).toFixed(1)} ${unit}`
  return {
    name,
    bar: 2,
    barIs: 'at most',
    ratio: summarise(at(1).map((value, round) => value / (medians[round] ?? Number.NaN))),
    sides: [
      { value: middle(at(1)), label: 'the longest wait for the key' },
      { value: middle(medians), label: 'the median one' },
    ],
  }
}

function throughput(crowd: Crowd): Contest {
  return {
    name: 'queued_vs_plain',
    bar: 1,
    workers: crowdSize,
    measured: { label: 'guards of one key', operation: async () => await crowd.call(true) },
    baseline: { label: 'without the queue', operation: async () => await crowd.call(false) },
  }
}

/** Whether the queue of one process costs another process its turns. */
async function processes(url: string, ms: number): Promise<FactTable> {
  await using team = await startTeam<{ url: string }, ProcessOrder, Wait[]>(
    new URL('hot-key-process.ts', import.meta.url),
    2,
    { url },
  )
  const rows: string[][] = []
  for (const queue of [
    [true, true],
    [false, false],
    [true, false],
  ]) {
    const waits = (await team.round({ ms, queue })).map((each) => each.map((wait) => wait.ms))
    const all = waits.reduce((sum, each) => sum + each.length, 0)
    rows.push([
      queue.map((each) => (each ? 'queue' : 'no queue')).join(' / '),
      `${Math.round(all / (ms / 1_000))}`,
      ...waits.map(
        (each) =>
          `${((100 * each.length) / all).toFixed(0)} %, ${quantile(each, 0.5).toFixed(0)} ms, ${quantile(each, 1).toFixed(0)} ms`,
      ),
    ])
  }
  return {
    title: `Two processes with ${crowdSize} callers each on one key: share of the guards, median and longest wait`,
    columns: ['processes', 'guards/s', 'first', 'second'],
    rows,
  }
}
