import type { Driver, Row, Transaction } from '../../../core/driver.ts'
import { keyLost } from '../../../core/errors/key-lost.ts'
import { holdfastError } from '../../../core/errors.ts'
import { displayName } from '../../../core/table-name.ts'
import type { WaitTerms } from '../../../core/options/wait.ts'
import type {
  KeyFields,
  RowEngine,
  RowTarget,
  VersionedRead,
  VersionedRow,
} from '../../../rows/engine.ts'
import { affectedBy, sqliteDriverOf, sqliteOf } from '../driver.ts'
import { isBusy, isOldSnapshot } from '../result-code.ts'
import { readRow, touch, updateRow } from './rows.ts'
import { assignments } from './values.ts'

/** The one right to write keeps all rows as they are. @throws ROWS_OUTSIDE_TRANSACTION, ROWS_BUSY, ROWS_TIMEOUT */
async function hold<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  target: RowTarget,
  { how, limitMs }: WaitTerms,
): Promise<void> {
  const subject = displayName(target.table)
  if (transaction.state() === 'none')
    throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } })
  const attempt = how !== 'wait'
  const by = touch({ ...target, versionColumn: '' })
  try {
    await sqliteOf(transaction).takeWriter({ attempt, limitMs, names: [subject], by })
  } catch (error) {
    if (isOldSnapshot(error)) {
      const details = { subject, client: driver.name }
      throw holdfastError('LOCK_STALE_SNAPSHOT', { cause: error, details })
    }
    if (!isBusy(error)) throw error
    const blockers = sqliteDriverOf(driver).writer().holders()
    throw attempt
      ? holdfastError('ROWS_BUSY', { cause: error, details: { subject }, blockers })
      : holdfastError('ROWS_TIMEOUT', {
          cause: error,
          details: { subject, endedBy: 'wait' },
          blockers,
        })
  }
}

async function read<Tx>(
  transaction: Transaction<Tx>,
  { target, key, columns }: VersionedRead,
): Promise<VersionedRow | undefined> {
  const [row] = await transaction.query(readRow(target, target.versionColumn, key, columns))
  return row && versioned(row)
}

function versioned({ '#version': version, ...row }: Row): VersionedRow {
  return { version: typeof version === 'string' ? version : undefined, row }
}

/** @throws ROWS_KEY_INVALID if the key is that of several rows */
async function theRow<Tx>(
  transaction: Transaction<Tx>,
  target: RowTarget,
  versionColumn: string | undefined,
  key: KeyFields,
  columns: readonly string[] | undefined,
): Promise<VersionedRow | undefined> {
  const [row, ...more] = await transaction.query(readRow(target, versionColumn, key, columns))
  if (more.length === 0) return row && versioned(row)
  const subject = `${displayName(target.table)}: the key columns do not identify one row`
  throw holdfastError('ROWS_KEY_INVALID', { details: { subject } })
}

/** The part of rows of SQLite: whoever writes has all of them. */
export const sqliteRows: RowEngine = {
  of: 'sqlite',
  foldsNames: true,
  async lock(driver, transaction, { target, keys, wait, columns, versionColumn }) {
    await hold(driver, transaction, target, wait)
    const found = []
    for (const [at, key] of keys.entries()) {
      const seen = await theRow(transaction, target, versionColumn, key, columns)
      const there = seen !== undefined
      found.push({
        positions: [at],
        locked: there,
        there,
        version: seen?.version,
        row: seen?.row ?? {},
      })
    }
    return found
  },
  async change(driver, transaction, { target, key, version, set, columns, wait }) {
    const sets = assignments(set)
    await hold(driver, transaction, target, wait)
    const before = await theRow(transaction, target, target.versionColumn, key, [])
    if (before?.version !== version) return []
    const changed = await transaction.query(updateRow(target, key, sets, version))
    if (affectedBy(changed) === 0) return []
    // As a trigger may have left it, which RETURNING does not show.
    const after = await read(transaction, { target, key, columns })
    // By `set`, or by a trigger. It is no conflict: the change is there, and is saved unless it is rolled back.
    if (after === undefined) throw keyLost(displayName(target.table))
    return [after]
  },
  read: (_, transaction, call) => read(transaction, call),
  readWithin: (_, transaction, { target, key, columns }) =>
    theRow(transaction, target, target.versionColumn, key, columns),
  async count(driver, transaction, { target, key, version, wait }) {
    await hold(driver, transaction, target, wait)
    await transaction.query(updateRow(target, key, [], version))
    const seen = await read(transaction, { target, key, columns: [] })
    return seen?.version === version ? 'suppressed' : 'counted'
  },
  lockTable() {
    // All of the file is locked, which would look like a lock of one table.
    throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'locks of whole tables' } })
  },
}
