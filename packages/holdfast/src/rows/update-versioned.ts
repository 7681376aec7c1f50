import type { CallSite } from '../core/locks/call-site.ts'
import type { Driver, Row, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { assertText, objectGiven } from '../core/options/given.ts'
import { displayName } from '../core/table-name.ts'
import { atMost, type WaitTerms } from '../core/options/wait.ts'
import type { RowEngine, SetValues, VersionedRow, VersionedTarget } from './engine.ts'
import { assertMaybeOpen } from './lock-rows.ts'
import {
  keyFields,
  type KeyOptions,
  type RowKey,
  rowTarget,
  type TableInput,
  valueText,
} from './row-key.ts'
import type { TableWait } from './row-wait.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

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
  /**
   * How long to wait for somebody who has the row. An update cannot do without waiting at all: `'nowait'` is
   * ROWS_BUSY after 50 ms.
   * @defaultValue '2 s', or what `createHoldfast` was given
   */
  readonly wait?: TableWait
}

export const versionOptions: KnownOptions<VersionOptions> = {
  versionColumn: 'text',
  keyColumns: 'texts',
}

export const versionedUpdate: KnownOptions<VersionedUpdate> = {
  ...versionOptions,
  version: 'checked',
  set: 'checked',
  columns: 'texts',
  wait: 'checked',
}

/** `updateVersioned` with its options resolved. */
export interface UpdateCall extends Omit<VersionedUpdate, 'wait'> {
  readonly target: VersionedTarget
  readonly key: RowKey
  readonly wait: WaitTerms
  /** Where the change was asked for. */
  readonly site: CallSite
}

/** The table, key and version columns of a call. */
export function versionedTarget(table: TableInput, options: VersionOptions): VersionedTarget {
  const target = rowTarget(table, options.keyColumns)
  const { versionColumn = 'version' } = options
  assertText(versionColumn, 'versionColumn')
  if (target.keyColumns.includes(versionColumn)) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'versionColumn', subject: 'versionColumn is a key column' },
    })
  }
  return { ...target, versionColumn }
}

/** Changes the row if it still has the version; otherwise says why not. */
export async function updateVersioned<Tx>(
  engine: RowEngine,
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: UpdateCall,
): Promise<Row> {
  const { target, columns, site } = call
  const set = objectGiven(call.set, 'set')
  const subject = displayName(target.table)
  assertMaybeOpen(transaction, subject)
  if (names(set, target.versionColumn, engine)) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'set', subject: 'set names the version column, which is counted up' },
    })
  }
  const key = keyFields(call.key, target)
  const version = versionText(call.version)
  const called = performance.now()
  const attempt = async (wait: WaitTerms): Promise<VersionedRow | undefined> => {
    const change = { target, key, version, set, columns, wait, site }
    const [changed, ...more] = await engine.change(driver, transaction, change)
    if (more.length > 0) {
      throw holdfastError('ROWS_KEY_INVALID', {
        details: {
          subject: `${subject}: the key columns do not identify one row, and all were changed: roll back`,
        },
      })
    }
    return changed
  }
  /** Throws unless the row has that version. A statement of its own: at READ COMMITTED it sees what an update was beaten by. */
  const assertVersion = async (): Promise<void> => {
    const found = await engine.read(driver, transaction, { target, key, columns: [] })
    if (found === undefined) throw versionConflict(target, undefined)
    if (found.version !== version) throw versionConflict(target, found.version ?? 'NULL')
  }
  let changed = await attempt(call.wait)
  if (changed === undefined) {
    await assertVersion()
    // Suppressed, or another row has taken the place of the one that was waited for: that can be changed now.
    const { limitMs = Infinity } = call.wait
    changed = await attempt(atMost(call.wait, limitMs - (performance.now() - called)))
  }
  if (changed === undefined) {
    await assertVersion()
    throw changeSuppressed(target)
  }
  // A trigger has put the old row, or the old version, in the place of the new one.
  if (changed.version === version) throw changeSuppressed(target)
  return changed.row
}

/** Whether values are given for a column. */
function names(set: SetValues, column: string, { foldsNames = false }: RowEngine): boolean {
  if (Object.hasOwn(set, column)) return true
  return foldsNames && Object.keys(set).some((each) => each.toLowerCase() === column.toLowerCase())
}

function versionText(version: unknown): string {
  if (['number', 'bigint', 'string'].includes(typeof version)) return valueText(version)
  const subject = 'version must be the version that was read: a number, a bigint or a text'
  throw holdfastError('OPTION_INVALID', { details: { option: 'version', subject } })
}

/** The error for a row that is what was read, and was not changed all the same. */
export function changeSuppressed(target: VersionedTarget): Error {
  return holdfastError('ROWS_CHANGE_SUPPRESSED', {
    details: { subject: displayName(target.table) },
  })
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
