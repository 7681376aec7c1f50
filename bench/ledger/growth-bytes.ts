import { totalmem } from 'node:os'
import { withClient } from '@holdfast/testkit'
import type { FactTable } from '../harness/bench-scenario.ts'
import { openPool } from '../harness/open-pool.ts'
import { callOf } from './growth-callers.ts'
import { yearsOf } from './years.ts'

/** Databases by their size. */
interface Histories {
  readonly sizes: readonly number[]
  readonly urls: readonly string[]
}

export const gb = (bytes: number): string => (bytes / 1e9).toFixed(1)

export async function sizesTable({ sizes, urls }: Histories): Promise<FactTable> {
  const rows = await Promise.all(
    sizes.map(async (size, at) => {
      const values = await withClient(urls[at] ?? '', async (client) => {
        const { rows: found } = await client.query<{ part: string; bytes: string }>(
          `SELECT 'all' AS part, pg_database_size(current_database())::text AS bytes
           UNION ALL SELECT 'ids', pg_total_relation_size('holdfast.operation')::text
           UNION ALL SELECT 'index', pg_relation_size('holdfast.operation_pkey')::text
           UNION ALL SELECT 'movements', sum(pg_total_relation_size(relid))::text FROM pg_partition_tree('holdfast.movement')`,
        )
        return new Map(found.map(({ part, bytes }) => [part, Number(bytes)]))
      })
      const of = (part: string): number => values.get(part) ?? 0
      return [
        size.toLocaleString('en'),
        ...['all', 'movements', 'ids', 'index'].map((part) => gb(of(part))),
        Math.round(of('all') / size).toLocaleString('en'),
      ]
    }),
  )
  return {
    title: `GB on disk, on a machine with ${gb(totalmem())} GB of memory:`,
    columns: [
      'movements',
      'database',
      'movements',
      'operation ids',
      'of these the index',
      'bytes by movement',
    ],
    rows,
  }
}

/** From a checkpoint on, because the first change of a page after it writes all of the page. */
export async function walTable({ sizes, urls }: Histories, operations: number): Promise<FactTable> {
  const years = yearsOf(sizes.at(-1) ?? 0)
  const pool = await openPool(urls.at(-1) ?? '', 1)
  const rows: string[][] = []
  try {
    await pool.query('SET synchronous_commit = off')
    for (const kind of ['random', 'ordered'] as const) {
      const call = callOf(pool, kind, years)
      await pool.query('CHECKPOINT')
      const place = async (): Promise<string> => {
        const { rows: found } = await pool.query<{ at: string }>(
          'SELECT pg_current_wal_insert_lsn()::text AS at',
        )
        return found[0]?.at ?? ''
      }
      const from = await place()
      for (let at = 0; at < operations; at += 1) await call()
      const { rows: found } = await pool.query<{ bytes: string }>(
        'SELECT pg_wal_lsn_diff($1::pg_lsn, $2::pg_lsn)::text AS bytes',
        [await place(), from],
      )
      rows.push([kind, Math.round(Number(found[0]?.bytes) / operations).toLocaleString('en')])
    }
  } finally {
    await pool.end()
  }
  return {
    title: `WAL bytes of an operation at the largest size, ${operations.toLocaleString('en')} of them from a checkpoint on:`,
    columns: ['ids', 'bytes'],
    rows,
  }
}
