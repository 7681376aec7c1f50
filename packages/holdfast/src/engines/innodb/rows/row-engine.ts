import type { Driver, Row, Transaction } from '../../../core/driver.ts'
import { keyLost } from '../../../core/errors/key-lost.ts'
import { holdfastError } from '../../../core/errors.ts'
import { displayName } from '../../../core/table-name.ts'
import type { WaitTerms } from '../../../core/options/wait.ts'
import type {
  Columns,
  KeyFields,
  RowAnswer,
  RowEngine,
  RowsToLock,
  RowTarget,
  VersionedChange,
  VersionedRow,
} from '../../../rows/engine.ts'
import { affectedBy, innodbOf } from '../driver.ts'
import { isMissingIndex, isReadOnly } from '../errno.ts'
import { forgetServer, serverOf } from '../server.ts'
import { inLockOrder } from '../sql/lock-order.ts'
import { type Fragment, tableText } from '../sql/text.ts'
import { endedWaitIn } from '../tx/ended-wait.ts'
import { readRows, type RowReading, updateRow } from './rows.ts'
import { fitTable, forgetTables } from './table-fit.ts'
import { assignments, keyCondition, type UsedTable } from './values.ts'

/** Rows of one table, by keys that were read. */
interface Rows {
  readonly from: string
  readonly subject: string
  readonly conditions: RowReading['conditions']
  readonly used: UsedTable
}

/** @throws ENGINE_TABLE_UNFIT, ROWS_KEY_INVALID, LOCK_ON_STANDBY */
async function rowsBy<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  target: RowTarget,
  keys: readonly KeyFields[],
): Promise<Rows> {
  const facts = await serverOf(driver, transaction)
  if (facts.isReadOnly) throw onStandby(driver, undefined)
  const subject = displayName(target.table)
  const { types, force } = await fitTable(driver, transaction, target)
  const used = { types, charsets: facts.charsets }
  const conditions = keys
    .map((key, at) => [at, keyCondition(key, used, 't', subject)] as const)
    .sort(([, a], [, b]) => inLockOrder(a, b))
  const from = `${tableText(target.table)} t${force}`
  return { from, subject, conditions, used }
}

function onStandby<Tx>(driver: Driver<Tx>, cause: unknown): Error {
  forgetServer(driver)
  return holdfastError('LOCK_ON_STANDBY', { cause, details: { client: driver.name } })
}

/** Runs statements that may wait, and names what ended the wait. */
async function waiting<Tx, T>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  subject: string,
  wait: WaitTerms,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (isReadOnly(error)) throw onStandby(driver, error)
    if (isMissingIndex(error)) {
      forgetTables(driver)
      const why = 'the key by which its rows were found is not there any more'
      const details = { subject: `${subject}: ${why}` }
      throw holdfastError('ROWS_KEY_INVALID', { cause: error, details })
    }
    const by = endedWaitIn(transaction, error)
    if (by === undefined) throw error
    // MariaDB has one number for both; what was asked for tells them apart.
    if (wait.how === 'nowait')
      throw holdfastError('ROWS_BUSY', { cause: error, details: { subject } })
    const endedBy = by === 'ours' ? 'wait' : 'lock_timeout'
    throw holdfastError('ROWS_TIMEOUT', { cause: error, details: { subject, endedBy } })
  }
}

/** What NOWAIT and SKIP LOCKED wait for all the same: a table that is being altered. */
const attemptMs = 1_000

/** A limit for each statement of a call that began then. */
function limitOf({ how, limitMs }: WaitTerms, began: number): number | undefined {
  if (how !== 'wait') return limitMs === undefined || limitMs === 0 ? attemptMs : limitMs
  return limitMs === undefined ? undefined : limitMs - (performance.now() - began)
}

async function assertOpen<Tx>(transaction: Transaction<Tx>, subject: string): Promise<void> {
  if (transaction.state() === 'open' || (await innodbOf(transaction).isOpen())) return
  throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } })
}

/** Reads one row, locked unless it is `plain`. */
async function readOne<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  target: RowTarget & { readonly versionColumn: string },
  key: KeyFields,
  { columns, how, wait }: { columns: Columns; how: RowReading['how']; wait: WaitTerms },
): Promise<VersionedRow | undefined> {
  const began = performance.now()
  const { from, subject, conditions } = await rowsBy(driver, transaction, target, [key])
  const { versionColumn } = target
  const [row] = await waiting(driver, transaction, subject, wait, async () =>
    transaction.query(
      readRows({ from, conditions, how, columns, versionColumn, limitMs: limitOf(wait, began) }),
    ),
  )
  return row === undefined ? undefined : versioned(row)
}

function versioned({ '#at': _at, '#version': version, ...row }: Row): VersionedRow {
  return { version: textOf(version), row }
}

function textOf(version: unknown): string | undefined {
  return typeof version === 'string' ? version : undefined
}

const noCondition: Fragment = { text: 'FALSE', values: [] }
const noLimit: WaitTerms = { how: 'wait', limitMs: undefined, yields: true }

async function lock<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: RowsToLock,
): Promise<readonly RowAnswer[]> {
  const { target, keys, strength, wait, columns, versionColumn, keepTransaction } = call
  if (strength === 'share' || strength === 'key share')
    throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: `strength '${strength}'` } })
  const began = performance.now()
  const { from, subject, conditions } = await rowsBy(driver, transaction, target, keys)
  const reading = { from, conditions, columns, versionColumn }
  const take = async (inner: Transaction<Tx>): Promise<readonly Row[]> =>
    await inner.query(readRows({ ...reading, how: wait.how, limitMs: limitOf(wait, began) }))
  const found = await waiting(driver, transaction, subject, wait, () =>
    keepTransaction ? transaction.nested(take) : take(transaction),
  )
  await assertOpen(transaction, subject)
  const locked = new Map(found.map((row) => [Number(row['#at']), row]))
  if (locked.size < found.length) throw severalRows(subject)
  const passedOver = conditions.filter(([at]) => !locked.has(at))
  const there =
    wait.how === 'skip' && passedOver.length > 0
      ? await transaction.query(
          readRows({ ...reading, conditions: passedOver, how: 'plain', limitMs: attemptMs }),
        )
      : []
  const isThere = new Set(there.map((row) => Number(row['#at'])))
  return keys.map((_, at): RowAnswer => {
    const given = locked.get(at)
    if (given === undefined) {
      return {
        positions: [at],
        locked: false,
        there: isThere.has(at),
        version: undefined,
        row: {},
      }
    }
    return { positions: [at], locked: true, there: true, ...versioned(given) }
  })
}

async function change<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { target, key, version, set, columns, wait }: VersionedChange,
): Promise<readonly VersionedRow[]> {
  const began = performance.now()
  const { from, subject, conditions, used } = await rowsBy(driver, transaction, target, [key])
  const sets = assignments(set, used)
  const condition = conditions[0]?.[1] ?? noCondition
  const { versionColumn } = target
  const read = (wanted: Columns, how: 'wait' | 'nowait'): Promise<readonly Row[]> =>
    transaction.query(
      readRows({
        from,
        conditions,
        how,
        columns: wanted,
        versionColumn,
        limitMs: limitOf(wait, began),
      }),
    )
  // MySQL limits nothing but a SELECT, so that is what waits.
  const how = wait.how === 'nowait' ? 'nowait' : 'wait'
  const [before] = await waiting(driver, transaction, subject, wait, () => read([], how))
  await assertOpen(transaction, subject)
  if (before === undefined || textOf(before['#version']) !== version) return []
  const counting = { column: versionColumn, version }
  const changed = await transaction.query(updateRow(from, condition, sets, counting))
  if (affectedBy(changed) === 0) return []
  const after = await read(columns, 'wait')
  // By `set`, or by a trigger. It is no conflict: the change is there, and is saved unless it is rolled back.
  if (after.length === 0) throw keyLost(subject)
  return after.map(versioned)
}

/** The part of row locks of MariaDB and MySQL. */
export const innodbRows: RowEngine = {
  of: 'innodb',
  foldsNames: true,
  lock,
  change,
  // Locked, because at REPEATABLE READ a plain read would show what was there at the first one.
  read: (driver, transaction, { target, key, columns }) =>
    readOne(driver, transaction, target, key, { columns, how: 'wait', wait: noLimit }),
  readWithin: (driver, transaction, { target, key, columns, wait }) =>
    readOne(driver, transaction, target, key, { columns, how: 'plain', wait }),
  async count(driver, transaction, { target, key, version, wait }) {
    const { from, conditions, subject } = await rowsBy(driver, transaction, target, [key])
    const condition = conditions[0]?.[1] ?? noCondition
    const counting = { column: target.versionColumn, version }
    await waiting(driver, transaction, subject, wait, () =>
      transaction.query(updateRow(from, condition, [], counting)),
    )
    const seen = await readOne(driver, transaction, target, key, {
      columns: [],
      how: 'wait',
      wait,
    })
    return seen?.version === version ? 'suppressed' : 'counted'
  },
  lockTable() {
    // LOCK TABLES commits what is open.
    throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'locks of whole tables' } })
  },
}

function severalRows(subject: string): Error {
  const details = { subject: `${subject}: the key columns do not identify one row` }
  return holdfastError('ROWS_KEY_INVALID', { details })
}
