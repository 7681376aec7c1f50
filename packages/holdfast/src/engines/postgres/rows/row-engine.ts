import type { Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { isTrue } from '../../../core/is-true.ts'
import { displayName } from '../../../core/table-name.ts'
import type { WaitTerms } from '../../../core/options/wait.ts'
import type {
  RowAnswer,
  RowEngine,
  RowsToLock,
  RowTarget,
  TableLockMode,
  VersionedChange,
  VersionedRow,
} from '../../../rows/engine.ts'
import { withOperators } from '../sql/own-operators.ts'
import { askBeside, type Questions } from './contention.ts'
import { LimitedWait, type Waiting } from './limited-wait.ts'
import { lockTable } from './lock-table.ts'
import { rowLockHolders, rowShareHolders, tableLockHolders } from './row-blockers.ts'
import { watchRowOrder } from './row-order.ts'
import { countVersion, readVersion, updateVersion } from './row-version.ts'
import { modeOf, readKeys, rowAnswer, rowLockStatement } from './rows.ts'
import { setJson } from './set-json.ts'

const patience = { wait: 'wait', skip: 'skip', nowait: 'fail' } as const

/** SAVEPOINT outside a transaction. */
const noTransaction = '25P01'

async function lock<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: RowsToLock,
): Promise<readonly RowAnswer[]> {
  const { keys, strength, wait, columns, versionColumn, keepTransaction, site } = call
  const target = await withOperators(driver, transaction, call.target)
  const { table } = target
  const keysJson = JSON.stringify(keys)
  const waiting = new LimitedWait(driver, transaction, { table, wait, does: 'lock' })
  const take = async (inner: Transaction<Tx>): Promise<readonly Row[]> =>
    await waiting.query(inner, (unsure) =>
      rowLockStatement({
        target,
        keysJson,
        keyCount: keys.length,
        strength,
        patience: patience[wait.how],
        columns,
        versionColumn,
        unsure,
      }),
    )
  let rows: readonly Row[]
  try {
    rows = keepTransaction ? await transaction.nested(take) : await take(transaction)
  } catch (error) {
    const questions: Questions = [
      (waiter) => tableLockHolders(table, 'row share', waiter),
      (waiter) => rowLockHolders(target, keysJson, waiter),
      (waiter) => rowShareHolders(target, keysJson, strength, waiter),
    ]
    const usable = keepTransaction ? transaction : undefined
    const failure = await waiting.failure(error, questions, usable)
    throw await named(driver, failure, target, keysJson)
  }
  const answers = rows.map(rowAnswer)
  if (answers.some(({ locked }) => locked)) {
    const waits = wait.how === 'wait'
    watchRowOrder(driver, rows[0]?.['#marked'], { table, mode: modeOf(strength), waits, site })
  }
  return answers
}

async function named<Tx>(
  driver: Driver<Tx>,
  error: unknown,
  target: RowTarget,
  keysJson: string,
): Promise<unknown> {
  const details = { subject: displayName(target.table) }
  const state = sqlStateOf(error)
  if (state === noTransaction) {
    return holdfastError('ROWS_OUTSIDE_TRANSACTION', { cause: error, details })
  }
  // Class 22: the server could not read a key as the type of its column, if it cannot read it by itself either. Otherwise
  // something else of the table failed, such as a policy.
  if (state?.startsWith('22') !== true) return error
  const reading = readKeys(target, keysJson)
  const isReadable = await askBeside(driver, async (transaction) => transaction.query(reading))
  return isReadable === undefined
    ? holdfastError('ROWS_KEY_INVALID', { cause: error, details })
    : error
}

async function change<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { target: given, key, version, set, columns, wait, site }: VersionedChange,
): Promise<readonly VersionedRow[]> {
  const soughtJson = JSON.stringify({ ...key, [given.versionColumn]: version })
  const changes = { soughtJson, setJson: setJson(set) }
  const target = await withOperators(driver, transaction, given)
  const { table } = target
  const waiting = new LimitedWait(driver, transaction, { table, wait, does: 'change' })
  let rows: readonly Row[]
  try {
    rows = await waiting.query(transaction, (unsure) =>
      updateVersion(target, changes, Object.keys(set), columns, unsure),
    )
  } catch (error) {
    const keysJson = JSON.stringify([key])
    throw await waiting.failure(error, [
      (waiter) => tableLockHolders(table, 'row exclusive', waiter),
      (waiter) => rowLockHolders(target, keysJson, waiter),
      (waiter) => rowShareHolders(target, keysJson, 'no key update', waiter),
    ])
  }
  const changed = rows.filter((row) => row['#version'] !== null)
  if (changed.length > 0)
    watchRowOrder(driver, rows[0]?.['#marked'], { table, mode: 'exclusive', waits: true, site })
  return changed.map(versionedRow)
}

function versionedRow(answer: Row): VersionedRow {
  const { '#limited': _, '#marked': __, '#version': version, ...row } = answer
  return { version: typeof version === 'string' ? version : undefined, row }
}

interface LimitedStatement {
  readonly wait: WaitTerms
  readonly does: Waiting['does']
  /** How it locks the table. */
  readonly mode: TableLockMode
  readonly statement: Statement
}

/** For what waits for nobody but those who have locked the whole table, or an index of it. */
async function limited<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { table }: RowTarget,
  { wait, does, mode, statement }: LimitedStatement,
): Promise<Row | undefined> {
  const waiting = new LimitedWait(driver, transaction, { table, wait, does, ours: true })
  try {
    const [row] = await waiting.query(transaction, () => statement)
    return row
  } catch (error) {
    throw await waiting.failure(error, [(waiter) => tableLockHolders(table, mode, waiter)])
  }
}

/** PostgreSQL's part of row and table locks. */
export const postgresRows: RowEngine = {
  of: 'postgres',
  lock,
  change,
  async read(driver, transaction, { target: given, key, columns }) {
    const target = await withOperators(driver, transaction, given)
    const [row] = await transaction.query(readVersion(target, JSON.stringify(key), columns))
    return row === undefined ? undefined : versionedRow(row)
  },
  async readWithin(driver, transaction, { target: given, key, columns, wait }) {
    const target = await withOperators(driver, transaction, given)
    const statement = readVersion(target, JSON.stringify(key), columns)
    const terms = { wait, does: 'lock', mode: 'access share', statement } as const
    const row = await limited(driver, transaction, target, terms)
    return row === undefined ? undefined : versionedRow(row)
  },
  async count(driver, transaction, { target: given, key, version, wait }) {
    const target = await withOperators(driver, transaction, given)
    const sought = { ...key, [target.versionColumn]: version }
    const statement = countVersion(target, JSON.stringify(sought))
    const terms = { wait, does: 'change', mode: 'row exclusive', statement } as const
    const row = await limited(driver, transaction, target, terms)
    return isTrue(row?.['suppressed']) ? 'suppressed' : 'counted'
  },
  lockTable,
}
