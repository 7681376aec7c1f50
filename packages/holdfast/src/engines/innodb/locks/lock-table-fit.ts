import type { Executor } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { lockTable } from '../schema/lock-table.ts'
import { showTable, tableFacts, unfitTable } from '../schema/table-facts.ts'

/** Columns that a smaller type has no room for: moments in microseconds, and counts that only grow. */
const numbers = ['seq', 'stamp', 'conn', 'since'] as const

/** Tables that were seen to be as they have to be, by driver. */
const proven = new WeakMap<object, Set<string>>()

export function isProvenTable(driver: object, table: string): boolean {
  return proven.get(driver)?.has(table) === true
}

/**
 * Looks once whether rows of the table can be locked and written: of another engine than InnoDB they cannot be locked, and
 * with another collation two names may be one.
 *
 * @throws ENGINE_TABLE_UNFIT, OPTION_INVALID
 */
export async function assertLockTable(
  driver: object,
  executor: Executor,
  { database }: { readonly database: string | undefined },
): Promise<void> {
  const table = lockTable(database)
  if (isProvenTable(driver, table)) return
  if (database === undefined) {
    const subject = 'the connection has chosen no database; name the one that holdfast_lock is in'
    throw holdfastError('OPTION_INVALID', { details: { option: 'database', subject } })
  }
  const facts = tableFacts(await executor.query(showTable(table)))
  const { isInnodb, isOwn, keys, types } = facts
  const [key = []] = keys
  const isByName = key.length === 1 && key[0] === 'name'
  const isExact = /^varchar\(64\) character set ascii collate ascii_bin\b/.test(
    types.get('name') ?? '',
  )
  const isWide = numbers.every((column) => types.get(column)?.startsWith('bigint') === true)
  if (!isInnodb || isOwn || !isByName || !isExact || !isWide) {
    const subject = unfitTable('holdfast_lock', facts)
    throw holdfastError('ENGINE_TABLE_UNFIT', { details: { subject } })
  }
  const tables = proven.get(driver) ?? new Set()
  proven.set(driver, tables.add(table))
}
