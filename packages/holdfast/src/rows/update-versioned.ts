import type { Driver, Row, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import {
  rowLockHolders,
  rowShareHolders,
  tableLockHolders,
} from '../engines/postgres/row-blockers.ts'
import {
  readVersion,
  updateVersion,
  type VersionedTarget,
} from '../engines/postgres/row-version.ts'
import { contention } from './contention.ts'
import { assertMaybeOpen } from './lock-rows.ts'
import {
  displayName,
  keyFields,
  type KeyOptions,
  type RowKey,
  rowTarget,
  type TableInput,
  valueText,
} from './row-key.ts'
import { type SetValues, setJson } from './set-values.ts'

/** Where the version is. */
export interface VersionOptions extends KeyOptions {
  /** A whole number, NOT NULL, that every change counts up by one. @defaultValue 'version' */
  readonly versionColumn?: string
}

/** A change to one row that may only happen to the version it was decided on. */
export interface VersionedUpdate extends VersionOptions {
  /** The version that was read. */
  readonly version: number | bigint | string
  /** New values; the version is counted up and not among them. */
  readonly set: SetValues
  /** Columns to return. Name them where the client cannot read all. @defaultValue all */
  readonly columns?: readonly string[]
}

/** The table, key and version columns of a call. */
export function versionedTarget(table: TableInput, options: VersionOptions): VersionedTarget {
  const target = rowTarget(table, options.keyColumns)
  const { versionColumn = 'version' } = options
  if (target.keyColumns.includes(versionColumn)) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'versionColumn', subject: 'versionColumn is a key column' },
    })
  }
  return { ...target, versionColumn }
}

/** Changes the row if it still has the version; otherwise says why not. */
export async function updateVersioned<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  target: VersionedTarget,
  key: RowKey,
  update: VersionedUpdate,
): Promise<Row> {
  const subject = displayName(target.table)
  assertMaybeOpen(transaction, subject)
  const { set, version } = update
  if (Object.hasOwn(set, target.versionColumn)) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'set', subject: 'set names the version column, which is counted up' },
    })
  }
  const fields = keyFields(key, target)
  const soughtJson = JSON.stringify({ ...fields, [target.versionColumn]: valueText(version) })
  const statement = updateVersion(
    target,
    { soughtJson, setJson: setJson(set) },
    Object.keys(set),
    update.columns,
  )
  const began = performance.now()
  let rows: readonly Row[]
  try {
    rows = await transaction.query(statement)
  } catch (error) {
    // The caller's own lock_timeout: this call sets none.
    if (sqlStateOf(error) !== '55P03') throw error
    const keysJson = JSON.stringify([fields])
    throw await contention(driver, {
      code: 'ROWS_TIMEOUT',
      cause: error,
      subject,
      waitMs: performance.now() - began,
      usable: undefined,
      questions: [
        tableLockHolders(target.table, 'row exclusive'),
        rowLockHolders(target, keysJson),
        rowShareHolders(target, keysJson),
      ],
    })
  }
  const [changed, ...more] = rows
  if (more.length > 0) {
    throw holdfastError('ROWS_KEY_INVALID', {
      details: { subject: `${subject}: the key columns do not identify one row` },
    })
  }
  if (changed === undefined) {
    // A statement of its own: at READ COMMITTED it sees what the update was beaten by.
    const [found] = await transaction.query(readVersion(target, JSON.stringify(fields), []))
    throw versionConflict(target, found === undefined ? undefined : String(found['#version']))
  }
  const { '#marked': _, '#version': __, ...row } = changed
  return row
}

/** The error for a row that is no longer what was read. */
export function versionConflict(target: VersionedTarget, found: string | undefined): Error {
  const subject = displayName(target.table)
  const reason = found === undefined ? 'missing' : 'changed'
  publish(channels.rowsConflict, { table: subject, reason })
  return holdfastError('ROWS_VERSION_CONFLICT', {
    details: found === undefined ? { subject, reason } : { subject, reason, foundVersion: found },
  })
}
