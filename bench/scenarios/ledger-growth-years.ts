import { statfs } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type PostgresServer, startPostgres, withClient } from '@holdfast/testkit'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import type { BenchResult, FactTable } from '../harness/bench-scenario.ts'
import { type Comparison, compare } from '../harness/compare.ts'
import type { LatencyEffort } from '../harness/compare-latency.ts'
import type { ChartLine } from '../harness/line-chart.ts'
import { meterOf } from '../harness/meter.ts'
import { openPool } from '../harness/open-pool.ts'
import { processorSeconds } from '../harness/processor-seconds.ts'
import { summarise } from '../harness/summary.ts'
import { gb, sizesTable, walTable } from '../ledger/growth-bytes.ts'
import { callOf, inTurn } from '../ledger/growth-callers.ts'
import { growthLine, named, results, writeGrowthChart } from '../ledger/growth-chart.ts'
import { growthRatios, growthTable, kindRatios } from '../ledger/growth-ratios.ts'
import { loadYears } from '../ledger/load-years.ts'
import { installLedger } from '../ledger/open-ledger.ts'
import { retentionMeanwhile } from '../ledger/retention-meanwhile.ts'
import { months, type Years, yearsOf } from '../ledger/years.ts'

/** More than this is not taken from a disk, whatever is free. */
const mostDisk = 60e9
/** Measured: tables and indexes by movement, everything included. */
const bytesPerMovement = 490
/** WAL, and what an index is sorted in. */
const besides = 5e9
/** Connections where operations are many at a time. */
const crowd = 16

interface Task {
  readonly most: number
  readonly effort: LatencyEffort
  readonly progress: (text: string) => void
}

interface Ground {
  readonly server: PostgresServer
  readonly sizes: readonly number[]
  readonly urls: readonly string[]
  readonly effort: LatencyEffort
  readonly progress: (text: string) => void
}

const loading = {
  wal_level: 'minimal',
  max_wal_senders: '0',
  shared_buffers: '1GB',
  max_wal_size: '2GB',
  checkpoint_timeout: '30min',
  autovacuum: 'off',
}
const measuring = { shared_buffers: '256MB', max_wal_size: '2GB' }

/** Sizes up to `most`, over accounts that grow with them and months of two years. */
export async function growthOverYears({ most, effort, progress }: Task): Promise<BenchResult> {
  const sizes = [10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size < most).concat(most)
  await using server = await startPostgres({
    // Given otherwise, because they change.
    settings: { fsync: 'on', wal_level: undefined, wal_keep_size: undefined },
  })
  await assertDisk(server, sizes, progress)
  await restartWith(server, loading)
  const urls: string[] = []
  const began = performance.now()
  const spent = processorSeconds(server.pid)
  for (const size of sizes) {
    progress(`loading ${size.toLocaleString('en')} movements`)
    const tell = (text: string): void => {
      // Of a session that has ended, only what was seen is known.
      spent?.server()
      progress(text)
    }
    urls.push(await loaded(server, yearsOf(size), tell))
  }
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  const ofProcessors = ((spent?.server() ?? 0) / 60).toFixed(1)
  progress(`loaded in ${minutes} min, of which the server had a processor for ${ofProcessors}`)
  await restartWith(server, measuring)

  const ground: Ground = { server, sizes, urls, effort, progress }
  const facts: FactTable[] = [await sizesTable(ground)]
  const comparisons: Comparison[] = []
  const lines: ChartLine[] = []
  for (const [suffix, isAsync] of [
    ['', false],
    ['_async', true],
  ] as const) {
    progress(`measuring${suffix.replaceAll('_', ' ')}`)
    const turns = await inTurn(ground, isAsync, [
      ...sizes.map((size, at) => ({ at, size, kind: 'random' as const })),
      ...sizes.map((size, at) => ({ at, size, kind: 'ordered' as const })),
    ])
    const [random, ordered] = [turns.slice(0, sizes.length), turns.slice(sizes.length)]
    comparisons.push(
      ...growthRatios(sizes, random, suffix, suffix === ''),
      ...growthRatios(sizes, ordered, `_ordered${suffix}`, false),
      ...kindRatios(random.at(-1), ordered.at(-1), `${named(most)}${suffix}`),
    )
    for (const [name, of] of [
      [`random ids${suffix.replaceAll('_', ' ')}`, random],
      [`time-ordered ids${suffix.replaceAll('_', ' ')}`, ordered],
    ] as const) {
      const points = sizes.map((size, at) => ({ size, ...summarise(of[at]?.medians ?? []) }))
      lines.push(growthLine(name, points))
      facts.push(growthTable(name, sizes, of))
    }
  }
  progress('measuring ids of long ago, sent again')
  const replayed = await inTurn(
    ground,
    true,
    sizes.map((size, at) => ({ at, size, kind: 'replay' as const })),
  )
  comparisons.push(...growthRatios(sizes, replayed, '_replay_async', false))
  facts.push(growthTable('ids of long ago, sent again, async', sizes, replayed))

  comparisons.push(...(await crowdOf(ground)))
  facts.push(await walTable(ground, effort.rounds * 500))
  comparisons.push(...(await beyondMemory(ground, facts)))
  const retention = await retentionMeanwhile({
    url: urls.at(-1) ?? '',
    years: yearsOf(most),
    seconds: Math.max(5, effort.limitMs / 6_000),
    longestMs: 15 * 60_000,
    progress,
  })
  facts.push(retention.facts)
  comparisons.push(retention.comparison)

  const chart = new URL(`ledger-growth.${named(most)}.svg`, results)
  await writeGrowthChart(chart, 'movements in the ledger, a tenth as many accounts', lines)
  progress(`chart written to ${fileURLToPath(chart)}`)
  return { comparisons, facts, method: methodOf(sizes, minutes) }
}

function methodOf(sizes: readonly number[], minutes: string): string {
  return (
    `One server, fsync on, shared_buffers 256MB, one database per size (${sizes.map(named).join(', ')} movements), loaded by SQL in ${minutes} minutes with valid chains ` +
    `(audited at the smallest size): a tenth as many accounts as movements, nine movements each, two accounts with a twentieth of all, over ${months} months of partitions, an operation id for each. ` +
    'Half of the buckets, the first column of the index on ids, have random ids (version 4), half time-ordered ones (version 7); calls with ids of a kind go to accounts with such a past. ' +
    'One caller, one connection per database and kind; calls go round one by one, every fifth to the deep account, all others to any, so that whatever the machine does hits all. Median latency per round; ratios per round, their median with p10 and p90; more than 1 is slower. ' +
    'cpu: microseconds of a processor of the session that serves the calls, as the system counts them. _async: synchronous_commit off. replay: an id of the loaded history is sent again. ' +
    `uuid7_vs_random_${crowd}: ${crowd} callers, slices in turn, more than 1 is better. beyond_memory: PostgreSQL 16 and later, without the cache of the system (debug_io_direct), on fewer shared_buffers than a quarter of the ids take. ` +
    'Retention: maintain drops two months with their ids while one caller goes on, against the same caller just before.'
  )
}

/** Says what it will take, and takes nothing if that is too much. */
async function assertDisk(
  server: PostgresServer,
  sizes: readonly number[],
  progress: (text: string) => void,
): Promise<void> {
  const movements = sizes.reduce((sum, size) => sum + size, 0)
  const needed = movements * bytesPerMovement + besides
  const { bavail, bsize } = await statfs(server.dataDir)
  const free = bavail * bsize
  progress(
    `needs about ${gb(needed)} GB of disk; ${gb(free)} GB are free, ${gb(mostDisk)} GB may be used`,
  )
  if (needed > Math.min(free * 0.95, mostDisk))
    throw new Error(
      `${gb(needed)} GB are too much for this disk: ask for less by --most, or make room`,
    )
}

async function restartWith(
  server: PostgresServer,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  await withClient(server.url(), async (client) => {
    await client.query('ALTER SYSTEM RESET ALL')
    for (const [name, value] of Object.entries(settings))
      await client.query(`ALTER SYSTEM SET ${name} = '${value}'`)
  })
  await server.shutDown('fast')
  await server.startAgain()
}

async function loaded(
  server: PostgresServer,
  years: Years,
  progress: (text: string) => void,
): Promise<string> {
  const url = await server.createDatabase(`years_${years.movements}`)
  await installLedger(url)
  await loadYears(url, years, progress)
  if (years.movements > 10_000) return url
  const pool = await openPool(url, 1)
  try {
    const { found, problems } = await createHoldfast(fromPg(pool)).ledger.audit()
    if (found > 0)
      throw new Error(`the history that was loaded does not add up: ${problems[0]?.check}`)
  } finally {
    await pool.end()
  }
  return url
}

/** Many at a time at the largest size, with everything that the server does for them. */
async function crowdOf({ server, sizes, urls, effort, progress }: Ground): Promise<Comparison[]> {
  const years = yearsOf(sizes.at(-1) ?? 0)
  const pool = await openPool(urls.at(-1) ?? '', crowd)
  try {
    const [random, ordered] = [callOf(pool, 'random', years), callOf(pool, 'ordered', years)]
    return [
      ...(await compare(
        {
          name: `uuid7_vs_random_${crowd}`,
          workers: crowd,
          measured: { label: 'time-ordered ids', operation: ordered },
          baseline: { label: 'random ids', operation: random },
        },
        { rounds: 12, sliceMs: Math.min(1_500, effort.limitMs / 40), limitMs: effort.limitMs / 3 },
        progress,
        meterOf({ postmaster: server.pid }),
      )),
    ]
  } finally {
    await pool.end()
  }
}

/** With as little memory as a quarter of the ids take, and without the system's. */
async function beyondMemory(ground: Ground, facts: FactTable[]): Promise<Comparison[]> {
  const { server, sizes, progress } = ground
  if (server.version < 16) {
    progress(
      `PostgreSQL ${server.version} cannot do without the cache of the system: HOLDFAST_PG=18 can`,
    )
    return []
  }
  const most = sizes.at(-1) ?? 0
  const buffersMb = Math.round(Math.min(2_048, Math.max(64, (most * 200) / 4 / 1e6)))
  await restartWith(server, {
    ...measuring,
    shared_buffers: `${buffersMb}MB`,
    debug_io_direct: 'data',
  })
  progress(`measuring with ${buffersMb} MB of memory`)
  const ends = [
    { at: 0, size: sizes[0] ?? 0 },
    { at: sizes.length - 1, size: most },
  ]
  const turns = await inTurn(
    ground,
    true,
    (['random', 'ordered'] as const).flatMap((kind) => ends.map((end) => ({ ...end, kind }))),
  )
  const both = ends.map(({ size }) => size)
  const [random, ordered] = [turns.slice(0, 2), turns.slice(2)]
  facts.push(
    growthTable(`random ids, async, ${buffersMb} MB of memory`, both, random),
    growthTable(`time-ordered ids, async, ${buffersMb} MB of memory`, both, ordered),
  )
  await restartWith(server, measuring)
  return [
    ...growthRatios(both, random, '_beyond_memory_async', false),
    ...growthRatios(both, ordered, '_ordered_beyond_memory_async', false),
    ...kindRatios(random.at(-1), ordered.at(-1), `${named(most)}_beyond_memory_async`),
  ]
}
