import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import type { Pool } from 'pg'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import {
  type Caller,
  type Latencies,
  type LatencyEffort,
  latenciesOf,
  latencyRatio,
} from '../harness/compare-latency.ts'
import type { ChartLine } from '../harness/line-chart.ts'
import { openPool } from '../harness/open-pool.ts'
import { summarise } from '../harness/summary.ts'
import { growthLine, named, results, writeGrowthChart } from '../ledger/growth-chart.ts'
import { anyKey, type History, keyOf, loadedId, loadHistory } from '../ledger/load-history.ts'
import { installLedger, ledgerOn } from '../ledger/open-ledger.ts'
import { growthOverYears } from './ledger-growth-years.ts'

/** The same accounts at every size, so that only the history grows. A tenth of it is one account's. */
const others = 9_000
const historyOf = (movements: number): History => ({
  deep: movements / 10,
  others,
  each: (movements * 0.9) / others,
})

interface Plan {
  readonly sizes: readonly number[]
  readonly effort: LatencyEffort
  readonly chart: URL
}

const full: Plan = {
  sizes: [10_000, 100_000, 1_000_000, 10_000_000],
  effort: { rounds: 40, calls: 200, limitMs: 180_000 },
  chart: new URL('ledger-growth.svg', results),
}
const quick: Plan = {
  sizes: [10_000, 50_000, 200_000],
  effort: { rounds: 6, calls: 60, limitMs: 8_000 },
  chart: new URL('ledger-growth.quick.svg', results),
}

export const ledgerGrowth: BenchScenario = {
  about: 'whether an operation costs more when there is more history',
  hasMost: true,
  method:
    'One server, fsync on, one database per size, loaded by SQL with valid chains: 9,001 accounts at every size, a tenth ' +
    'of all movements on one of them. One caller, one connection per database; calls go round the databases one by ' +
    'one, alternating between the deep account and any other, so that whatever the machine does hits all sizes. ' +
    'Median latency per round, the ratio of the largest to the smallest size per round, the median of the ratios ' +
    'reported with p10 and p90; more than 1 is slower. A commit waits for the disk, which hides what the server does; ' +
    'the ratios that end in _async are the same with synchronous_commit off. replay: an id of the loaded history is ' +
    'sent again.',
  async run({ quick: short, most, progress }) {
    const plan = short ? quick : full
    if (most !== undefined) return await growthOverYears({ most, effort: plan.effort, progress })
    await using server = await startPostgres({
      settings: { fsync: 'on', shared_buffers: '256MB', max_wal_size: '8GB' },
    })
    const urls: string[] = []
    for (const size of plan.sizes) {
      progress(`loading ${size} movements`)
      urls.push(await loaded(server, size))
    }
    const kinds = [
      ['', false, consuming],
      ['_async', true, consuming],
      ['_replay_async', true, replaying],
    ] as const
    const comparisons: Comparison[] = []
    const lines: ChartLine[] = []
    const facts: FactTable[] = []
    for (const [suffix, async, callerOf] of kinds) {
      progress(`measuring${suffix.replaceAll('_', ' ')}`)
      const medians = await measured(plan, urls, async, callerOf)
      comparisons.push(ratioOf(plan.sizes, medians, suffix))
      const points = plan.sizes.map((size, at) => ({ size, ...summarise(medians[at] ?? []) }))
      const name = `consume${suffix.replaceAll('_', ' ')}`
      lines.push(growthLine(name, points))
      facts.push({
        title: `${name}: median latency of rounds in ms, by history`,
        columns: ['movements', 'median', 'p10', 'p90'],
        rows: points.map(({ size, median, p10, p90 }) => [
          size.toLocaleString('en'),
          ...[median, p10, p90].map((value) => value.toFixed(3)),
        ]),
      })
    }
    await writeGrowthChart(
      plan.chart,
      'movements in the ledger, a tenth of them on one account',
      lines,
    )
    progress(`chart written to ${fileURLToPath(plan.chart)}`)
    return { comparisons, facts }
  },
}

async function loaded(server: PostgresServer, size: number): Promise<string> {
  const url = await server.createDatabase(`history_${size}`)
  await installLedger(url)
  await loadHistory(url, historyOf(size))
  return url
}

type CallerOf = (pool: Pool, size: number) => Caller

/** On the deep account and on any other, in turn. */
const consuming: CallerOf = (pool, size) => {
  const { quota } = ledgerOn(pool)
  let turn = 0
  return {
    label: `consume, ${size.toLocaleString('en')} movements`,
    call: () => {
      turn += 1
      const key = turn % 2 === 0 ? keyOf(0) : anyKey(historyOf(size))
      return quota.consume(key, 1, { operationId: randomUUID() })
    },
  }
}

/** An operation of long ago, once more: `loadHistory` has named them by key and number. */
const replaying: CallerOf = (pool, size) => {
  const { quota } = ledgerOn(pool)
  const { deep } = historyOf(size)
  return {
    label: `replay, ${size.toLocaleString('en')} movements`,
    call: async () => {
      const number = 1 + Math.floor(Math.random() * deep)
      const verdict = await quota.consume(keyOf(0), 1, { operationId: loadedId(keyOf(0), number) })
      if (!verdict.ok || !verdict.replayed) throw new Error('a loaded operation was not known')
    },
  }
}

async function measured(
  plan: Plan,
  urls: readonly string[],
  async: boolean,
  callerOf: CallerOf,
): Promise<Latencies> {
  const pools = await Promise.all(urls.map((url) => openPool(url, 1)))
  try {
    if (async) for (const pool of pools) await pool.query('SET synchronous_commit = off')
    const callers = pools.map((pool, at) => callerOf(pool, plan.sizes[at] ?? 0))
    return await latenciesOf(callers, plan.effort)
  } finally {
    await Promise.all(pools.map((pool) => pool.end()))
  }
}

function ratioOf(sizes: readonly number[], medians: Latencies, suffix: string): Comparison {
  const [least, most] = [sizes[0] ?? 0, sizes.at(-1) ?? 0]
  return latencyRatio(
    {
      name: `latency_${named(most)}_vs_${named(least)}${suffix}`,
      ...(suffix === '' ? { bar: 1.15, barIs: 'at most' } : {}),
    },
    { label: `${most.toLocaleString('en')} movements`, medians: medians.at(-1) ?? [] },
    { label: `${least.toLocaleString('en')} movements`, medians: medians[0] ?? [] },
  )
}
