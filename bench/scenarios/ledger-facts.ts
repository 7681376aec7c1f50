import { withClient } from '@holdfast/testkit'
import type { FactTable } from '../harness/bench-scenario.ts'
import { backendsEnded } from '../harness/backends-ended.ts'
import type { Comparison } from '../harness/compare.ts'
import { type Batching, callers, consume, type Ground, joined } from './ledger-contests.ts'

const sampleMs = 500
const joinedCallers = 16

interface Sample {
  readonly operations: number
  readonly commits: number
  readonly walBytes: number
  /** Of them pages that are written whole, because it is their first change since a checkpoint. */
  readonly pageBytes: number | undefined
}

/** Runs operations for a moment and looks at how far the WAL has moved. */
async function sample(
  ground: Ground,
  workers: number,
  operation: () => Promise<unknown>,
): Promise<Omit<Sample, 'commits'>> {
  let operations = 0
  const before = await walPosition(ground)
  const until = performance.now() + sampleMs
  const worker = async (): Promise<void> => {
    while (performance.now() < until) {
      await operation()
      operations += 1
    }
  }
  await Promise.all(Array.from({ length: workers }, worker))
  const after = await walPosition(ground)
  return {
    operations,
    walBytes: Number(after.bytes - before.bytes),
    pageBytes: await pageBytes(ground, before.lsn, after.lsn),
  }
}

async function walPosition({ pool }: Ground): Promise<{ lsn: string; bytes: bigint }> {
  const { rows } = await pool.query<{ lsn: string; bytes: string }>(
    `SELECT lsn::text, pg_wal_lsn_diff(lsn, '0/0') AS bytes FROM pg_current_wal_flush_lsn() AS lsn`,
  )
  const [row] = rows
  if (row === undefined) throw new Error('the server does not say where its WAL is')
  return { lsn: row.lsn, bytes: BigInt(row.bytes) }
}

/** From an extension that not every installation has. */
async function pageBytes({ pool }: Ground, from: string, to: string): Promise<number | undefined> {
  const { rows: available } = await pool.query(
    `SELECT FROM pg_available_extensions WHERE name = 'pg_walinspect'`,
  )
  if (available.length === 0) return undefined
  await pool.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
  const { rows } = await pool.query<{ bytes: string }>(
    'SELECT coalesce(sum(fpi_size), 0) AS bytes FROM pg_get_wal_stats($1::pg_lsn, $2::pg_lsn)',
    [from, to],
  )
  return Number(rows[0]?.bytes)
}

async function combinedSample(ground: Ground): Promise<Sample> {
  const { count } = ground.ledger
  Object.assign(count, { calls: 0, mostUnderWay: 0 })
  const found = await sample(ground, callers, () => consume(ground))
  return { ...found, commits: count.calls }
}

/** How many operations the combiner puts into a call, and how many calls it has under way. */
export async function batchingOf(ground: Ground): Promise<Batching> {
  const { operations, commits } = await combinedSample(ground)
  return {
    size: Math.max(1, Math.round(operations / commits)),
    underWay: Math.max(1, ground.ledger.count.mostUnderWay),
  }
}

export async function walOf(ground: Ground): Promise<Sample> {
  return await combinedSample(ground)
}

export async function walOfJoined(ground: Ground): Promise<Sample> {
  const found = await sample(ground, joinedCallers, () => joined(ground))
  return { ...found, commits: found.operations }
}

/** Samples of one key, of many keys, and of callers' transactions. */
export function perOperation(samples: readonly Sample[]): FactTable {
  const row = (name: string, value: (sample: Sample) => number | undefined): string[] => [
    name,
    ...samples.map((of) => value(of)?.toFixed(0) ?? 'not known'),
  ]
  return {
    title: `Per operation, ${callers} callers; a caller’s transaction has one operation:`,
    columns: ['', 'one key', '100,000 keys', 'callers’ transactions'],
    rows: [
      row('operations per commit', ({ operations, commits }) => operations / commits),
      row('WAL bytes per operation', ({ walBytes, operations }) => walBytes / operations),
      row('of them whole pages, after a checkpoint', ({ pageBytes: bytes, operations }) =>
        bytes === undefined ? undefined : bytes / operations,
      ),
    ],
  }
}

const stored = {
  'movement, rows': `SELECT sum(pg_relation_size(relid)) AS bytes FROM pg_partition_tree('holdfast.movement')`,
  'movement, indexes': `SELECT sum(pg_indexes_size(relid)) AS bytes FROM pg_partition_tree('holdfast.movement') WHERE isleaf`,
  'operation, rows': `SELECT pg_relation_size('holdfast.operation') AS bytes`,
  'operation, indexes': `SELECT pg_indexes_size('holdfast.operation') AS bytes`,
} as const

/** On one key, and on many. */
export async function storedPerMovement(...grounds: readonly Ground[]): Promise<FactTable> {
  const columns = await Promise.all(
    grounds.map(async ({ pool }) => {
      const { rows } = await pool.query<{ count: string }>('SELECT count(*) FROM holdfast.movement')
      const sizes: number[] = []
      for (const query of Object.values(stored)) {
        const { rows: found } = await pool.query<{ bytes: string }>(query)
        sizes.push(Number(found[0]?.bytes) / Number(rows[0]?.count))
      }
      return [...sizes, sizes.reduce((sum, size) => sum + size, 0)]
    }),
  )
  return {
    title: 'Bytes stored per movement:',
    columns: ['', 'one key', '100,000 keys'],
    rows: [...Object.keys(stored), 'together'].map((name, row) => [
      name,
      ...columns.map((sizes) => String(Math.round(sizes[row] ?? Number.NaN))),
    ]),
  }
}

/** Updates that needed no new index entry, of all updates of `balance`. */
export async function hotUpdateShare(url: string): Promise<Comparison> {
  return await withClient(url, async (client) => {
    await backendsEnded(client)
    const { rows } = await client.query<{ hot: string; updates: string }>(
      `SELECT n_tup_hot_upd AS hot, n_tup_upd AS updates FROM pg_stat_user_tables
       WHERE schemaname = 'holdfast' AND relname = 'balance'`,
    )
    const { hot, updates } = rows[0] ?? { hot: '0', updates: '0' }
    const share = Number(hot) / Number(updates)
    return {
      name: 'hot_update_share',
      bar: 0.95,
      ratio: { median: share, p10: share, p90: share },
      sides: [
        { value: hot, label: 'updates of balance were HOT' },
        { value: updates, label: 'updates of balance' },
      ],
    }
  })
}
