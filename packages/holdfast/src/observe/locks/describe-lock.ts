import type { SeenLock } from '../../engines/postgres/observe/locks.ts'
import { lockIdOf } from './lock-id.ts'
import type { ObservedLock } from '../model.ts'
import { isAdvisory, type Names } from './naming.ts'

/** Which lock it is: rows of pg_locks with the same text are about the same lock. */
export function lockTag(lock: SeenLock): string {
  return [
    lock.type,
    lock.database,
    lock.relation,
    lock.page,
    lock.tuple,
    lock.virtualxid,
    lock.transactionid,
    lock.classid,
    lock.objid,
    lock.objsubid,
  ].join('/')
}

/** The row that a session wants, as far as its other locks tell. */
export interface WantedRow {
  readonly table: string
  readonly row: string | undefined
}

/** What else is known about a lock. */
export interface LockFacts {
  readonly names: Names
  /** What a wait for a transaction is really about. */
  readonly row: WantedRow | undefined
  /** The session whose transaction that is. */
  readonly holder: number | undefined
  /** A transaction of Holdfast's holds it: if it has no name, it may be cut off, or one of several. */
  readonly isLabelled: boolean
}

/** A lock in words. */
export function describeLock(
  lock: SeenLock,
  { names, row, holder, isLabelled }: LockFacts,
): ObservedLock {
  const { mode, table } = lock
  switch (lock.type) {
    case 'advisory':
      return describeAdvisory(lock, names, isLabelled)
    case 'relation':
      return {
        kind: 'table',
        name:
          table === null
            ? `table ${lock.relation} of another database`
            : `${relationKind(lock)} ${table}`,
        source: table === null ? 'none' : 'catalogue',
        ...(table === null ? {} : { table }),
        mode,
      }
    case 'tuple':
    case 'transactionid':
    case 'spectoken':
      return describeRow(lock, row, holder)
    case 'virtualxid':
      return { kind: 'transaction', name: endName(holder), source: 'none', mode }
    default:
      return {
        kind: 'other',
        name: lock.object ?? (table === null ? lock.type : `${lock.type} of ${table}`),
        source: lock.object === null && table === null ? 'none' : 'catalogue',
        ...(table === null ? {} : { table }),
        mode,
      }
  }
}

function describeAdvisory(lock: SeenLock, names: Names, isLabelled: boolean): ObservedLock {
  const { mode } = lock
  const id = lockIdOf(lock)
  const unnamed = (why: string): ObservedLock => ({
    kind: 'advisory',
    name: `advisory ${id.slice(2)} (${why})`,
    source: 'none',
    id,
    mode,
  })
  if (!isAdvisory(lock)) return unnamed('of another database')
  const known = names.get(id)
  if (known !== undefined) return { kind: 'named', ...known, id, mode }
  return unnamed(isLabelled ? 'name not noted' : 'not ours')
}

function describeRow(
  { mode }: SeenLock,
  wanted: WantedRow | undefined,
  holder: number | undefined,
): ObservedLock {
  if (wanted === undefined) {
    return { kind: 'transaction', name: transactionName(holder), source: 'none', mode }
  }
  const { table, row } = wanted
  return {
    kind: 'row',
    name: `row of ${table}`,
    source: 'catalogue',
    table,
    ...(row === undefined ? {} : { row }),
    mode,
  }
}

function transactionName(holder: number | undefined): string {
  if (holder === undefined) return 'a row or transaction'
  return holder === 0 ? 'a row or a prepared transaction' : `a row or transaction of pid ${holder}`
}

/** Who builds an index concurrently waits for everybody who began before. */
function endName(holder: number | undefined): string {
  return holder === undefined
    ? 'the end of a transaction'
    : `the end of the transaction of pid ${holder}`
}

function relationKind({ relkind }: SeenLock): string {
  if (relkind === 'i' || relkind === 'I') return 'index'
  if (relkind === 'S') return 'sequence'
  if (relkind === 'v' || relkind === 'm') return 'view'
  return 'table'
}

/**
 * Whoever waits for a row waits for the transaction that has it, and holds the place of the row in the
 * queue; or waits for that place. Without one (a duplicate key that is just being inserted) the row is of
 * the table that the session writes, if it writes only one.
 */
export function wantedRow(wanted: SeenLock, own: readonly SeenLock[]): WantedRow | undefined {
  const place = wanted.type === 'tuple' ? wanted : own.find(({ type }) => type === 'tuple')
  if (place !== undefined) {
    const table = place.table ?? `table ${place.relation} of another database`
    return { table, row: `(${place.page},${place.tuple})` }
  }
  const written = own.filter(isWrittenTable).map(({ table }) => table as string)
  const [table, ...more] = new Set(written)
  return table === undefined || more.length > 0 ? undefined : { table, row: undefined }
}

function isWrittenTable({ type, mode, relkind, table, granted }: SeenLock): boolean {
  return (
    type === 'relation' &&
    granted &&
    mode === 'RowExclusiveLock' &&
    relkind === 'r' &&
    table !== null
  )
}
