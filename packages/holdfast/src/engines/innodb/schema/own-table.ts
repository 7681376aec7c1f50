import type { Executor, Statement } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { tableText } from '../sql/text.ts'
import { showTable, tableFacts, unfitTable } from './table-facts.ts'

/** How the row of a name is called: see `rowName`. */
export const rowNameType = 'VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL'
/** What people called it; found by its row's name, never by this. */
export const shownType = 'VARCHAR(512) CHARACTER SET utf8mb4 NOT NULL'

/** A table of Holdfast. Moments in it are microseconds since 1970, and spans microseconds. */
export interface OwnTable {
  readonly table: string
  readonly columns: Readonly<Record<string, string>>
  readonly key: readonly string[]
  /** Other indexes, by their columns. */
  readonly indexes?: readonly (readonly string[])[]
}

/** Its name in a statement: in the database of the connection unless another one is chosen. */
export function ownTableText({ table }: OwnTable, database: string | undefined): string {
  return tableText(database === undefined ? { table } : { schema: database, table })
}

/** Commits what is open, as all DDL does; changes nothing if the table is there. */
export function createOwnTable(own: OwnTable, database: string | undefined): Statement {
  const { columns, key, indexes = [] } = own
  const lines = [
    ...Object.entries(columns).map(([column, type]) => `${column} ${type}`),
    `PRIMARY KEY (${key.join(', ')})`,
    ...indexes.map((index) => `KEY by_${index.at(-1) ?? ''} (${index.join(', ')})`),
  ]
  const text = `CREATE TABLE IF NOT EXISTS ${ownTableText(own, database)} (
  ${lines.join(',\n  ')}
) ENGINE=InnoDB`
  return { text, values: [] }
}

/** Tables that were seen to be as they have to be, by driver. */
const proven = new WeakMap<object, Set<string>>()

/**
 * Looks once whether a table is as `createOwnTable` makes it, as far as locks depend on it: rows of another engine than
 * InnoDB cannot be locked, and with another collation two names may be one.
 *
 * @throws ENGINE_TABLE_UNFIT
 */
export async function assertOwnTable(
  driver: object,
  executor: Executor,
  own: OwnTable,
  database: string | undefined,
): Promise<void> {
  const text = ownTableText(own, database)
  const tables = proven.get(driver) ?? new Set()
  proven.set(driver, tables)
  if (tables.has(text)) return
  const facts = tableFacts(await executor.query(showTable(text)))
  const { isInnodb, isOwn, keys, types } = facts
  const isFit =
    isInnodb &&
    !isOwn &&
    String(keys[0]) === String(own.key) &&
    Object.entries(own.columns).every(([name, type]) => isOfType(types.get(name), type))
  if (!isFit) {
    const subject = unfitTable(own.table, facts)
    throw holdfastError('ENGINE_TABLE_UNFIT', { details: { subject } })
  }
  tables.add(text)
}

/** Servers write a type in their own words: `bigint(20)`, `ascii_bin` without its character set. */
function isOfType(found: string | undefined, declared: string): boolean {
  const [kind = ''] = declared.toLowerCase().split(/[ (]/)
  if (found === undefined || !found.startsWith(kind)) return false
  return !declared.includes('ascii_bin') || found.includes('ascii_bin')
}
