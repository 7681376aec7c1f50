import type { CallSite } from '../core/call-site.ts'
import type { Driver, Row, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { atMost, type WaitTerms } from '../core/wait.ts'
import {
  rowLockHolders,
  rowShareHolders,
  tableLockHolders,
} from '../engines/postgres/rows/row-blockers.ts'
import {
  readVersion,
  updateVersion,
  type VersionedTarget,
} from '../engines/postgres/rows/row-version.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { LimitedWait } from './limited-wait.ts'
import { assertMaybeOpen } from './lock-rows.ts'
import type { TableWait } from './row-wait.ts'
import {
  displayName,
  keyFields,
  type KeyOptions,
  type RowKey,
  rowTarget,
  type TableInput,
  valueText,
} from './row-key.ts'
import { watchRowOrder } from './row-order.ts'
import { type SetValues, setJson } from './set-values.ts'
import { assertText, objectGiven } from '../core/given.ts'

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
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: UpdateCall,
): Promise<Row> {
  const { key, version } = call
  const set = objectGiven(call.set, 'set')
  const subject = displayName(call.target.table)
  assertMaybeOpen(transaction, subject)
  if (Object.hasOwn(set, call.target.versionColumn)) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'set', subject: 'set names the version column, which is counted up' },
    })
  }
  const fields = keyFields(key, call.target)
  const soughtJson = JSON.stringify({
    ...fields,
    [call.target.versionColumn]: versionText(version),
  })
  const change = { soughtJson, setJson: setJson(set) }
  const called = performance.now()
  const target = await withOperators(driver, transaction, call.target)
  const attempt = async (wait: WaitTerms): Promise<Row | undefined> => {
    const waiting = new LimitedWait(driver, transaction, {
      table: target.table,
      wait,
      does: 'change',
    })
    let rows: readonly Row[]
    try {
      rows = await waiting.query(transaction, (unsure) =>
        updateVersion(target, change, Object.keys(set), call.columns, unsure),
      )
    } catch (error) {
      const keysJson = JSON.stringify([fields])
      throw await waiting.failure(error, [
        (waiter) => tableLockHolders(target.table, 'row exclusive', waiter),
        (waiter) => rowLockHolders(target, keysJson, waiter),
        (waiter) => rowShareHolders(target, keysJson, 'no key update', waiter),
      ])
    }
    const [changed, ...more] = rows.filter((row) => row['#version'] !== null)
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
    const [found] = await transaction.query(readVersion(target, JSON.stringify(fields), []))
    const foundVersion = found === undefined ? undefined : String(found['#version'])
    if (foundVersion !== valueText(version)) throw versionConflict(target, foundVersion)
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
  if (String(changed['#version']) === valueText(version)) throw changeSuppressed(target)
  const { '#limited': _, '#marked': marked, '#version': __, ...row } = changed
  watchRowOrder(driver, marked, {
    table: target.table,
    mode: 'exclusive',
    waits: true,
    site: call.site,
  })
  return row
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
