import type { Executor, Row } from '../../../core/driver.ts'
import { lookupLimitMs } from '../../../core/options/wait.ts'
import { within } from '../../../core/within.ts'
import type { NamedLock } from './lock-name.ts'
import { lastHolders } from './locks.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

/** Who holds a row now. */
export interface RowHolder {
  readonly row: string
  readonly conn: number
  readonly ageMs: number
}

/**
 * Who holds these rows: they are written and not committed. Read twice, first as they are and then as they are committed,
 * so that it needs no rights and no lock; whoever is just about to write is not seen.
 */
export async function holdersOfRows(
  executor: Executor,
  table: string,
  rows: readonly string[],
): Promise<readonly RowHolder[]> {
  if (rows.length === 0) return []
  const written = await executor.query(lastHolders(table, rows, true))
  const committed = await executor.query(lastHolders(table, rows, false))
  const kept = new Map(committed.map((row) => [row['name'], row['seq']]))
  const isHeld = (row: Row): boolean => kept.get(row['name']) !== row['seq']
  return written.filter(isHeld).map((row) => ({
    row: String(row['name']),
    conn: Number(row['conn']),
    ageMs: Math.max(0, Number(row['age'])),
  }))
}

/** Who has one row, as an error tells it, which is not held back for long. Nobody if there is no answer in time. */
export async function blockersOfRow(
  executor: Executor,
  table: string,
  row: string,
  name: string,
): Promise<readonly Blocker[]> {
  const holders = await within(holdersOfRows(executor, table, [row]), lookupLimitMs)
  return (holders ?? []).map(({ conn, ageMs }) => ({
    pid: conn,
    name,
    ageMs,
    state: 'unknown',
    query: '',
  }))
}

/** The same of locks. Nothing if there is no answer in time. */
export async function blockersOf(
  executor: Executor,
  table: string,
  locks: readonly NamedLock[],
): Promise<readonly Blocker[] | undefined> {
  const rows = locks.map(({ row }) => row)
  const holders = await within(holdersOfRows(executor, table, rows), lookupLimitMs)
  return holders?.map(({ row, conn, ageMs }) => {
    const name = locks.find((lock) => lock.row === row)?.key.name ?? row
    return { pid: conn, name, ageMs, state: 'unknown', query: '' }
  })
}
