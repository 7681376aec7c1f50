import { holdfastError } from '../core/errors.ts'
import { isStorable } from '../core/storable.ts'
import type { TableName } from '../core/table-name.ts'
import type { KeyFields, RowTarget } from './engine.ts'
import { assertTexts, objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { type ModelName, ormNames, type OrmTable } from './orm-table.ts'

/** One value of a key. The server gives it the column's type; other types are passed as text. */
export type KeyValue = string | number | bigint | boolean

/** A row by its key: a value for one key column, an object for several. */
export type RowKey = KeyValue | Readonly<Record<string, KeyValue>>

/**
 * A table: its bare name, found by search_path, or `{ schema, table }`. Names are used exactly as
 * written. A dot in a bare name is refused, because nobody can tell what it means; a table that
 * really has one in its name is `{ table: 'a.b' }`. Or the table of an ORM: one of Drizzle's, a model of Prisma or
 * Sequelize, what TypeORM's or MikroORM's `getMetadata()` gives; its names in the database count.
 */
export type TableInput = string | TableName | OrmTable

const tableFields: KnownOptions<TableName> = {
  schema: 'checked',
  table: 'checked',
}

/**
 * The same where the client knows its tables by name: of Kysely's `Transaction<DB>` those of `DB`. A function for any
 * client takes `Rows<unknown>`.
 */
export type TableOf<Tx> = [Tx] extends [never]
  ? TableInput
  : Tx extends { readonly isTransaction: true; insertInto(table: infer Name): unknown }
    ? (Name & string) | TableName
    : TableInput

/** Which columns make up the key. */
export interface KeyOptions {
  /** Must identify one row. @defaultValue ['id'], or what an ORM's table says of its primary key */
  readonly keyColumns?: readonly string[]
}

/** The table and key columns of a call. */
export function rowTarget(table: TableInput, given?: readonly string[]): RowTarget {
  const keyColumns = given ?? ormNames(table)?.keyColumns ?? ['id']
  assertTexts(keyColumns, 'keyColumns')
  if (given === undefined && keyColumns.length === 0) {
    const subject = 'the key of this table cannot be read from the ORM; pass keyColumns'
    throw holdfastError('OPTION_INVALID', { details: { option: 'keyColumns', subject } })
  }
  if (keyColumns.length === 0 || new Set(keyColumns).size < keyColumns.length) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'keyColumns', subject: 'keyColumns is empty or names a column twice' },
    })
  }
  return { table: tableName(table), keyColumns }
}

export function tableName(table: TableInput): ModelName {
  const known = ormNames(table)
  if (known !== undefined) {
    const { keyColumns: _, ...name } = known
    return name
  }
  if (typeof table === 'function') {
    const subject = 'table is a class; pass what getMetadata() of your ORM gives for it'
    throw holdfastError('OPTION_INVALID', { details: { option: 'table', subject } })
  }
  if (typeof table !== 'string') {
    const given = objectGiven(table as TableName, 'table')
    // A misspelt schema would be another table.
    const { table: name, schema } = optionsGiven(given, tableFields, 'table')
    const isNamed = typeof name === 'string' && ['string', 'undefined'].includes(typeof schema)
    if (isNamed) return table as TableName
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'table', subject: 'table must be a name or { schema, table }' },
    })
  }
  if (table.includes('.')) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'table', subject: 'a dot in a table name; use { schema, table }' },
    })
  }
  return { table }
}

/** The key columns of one key as text, which is what the server types best. */
export function keyFields(key: RowKey, { keyColumns }: RowTarget): KeyFields {
  if (typeof key !== 'object' || key === null) {
    if (keyColumns.length !== 1) throw invalidKey('a value for each key column')
    return { [String(keyColumns[0])]: valueText(key) }
  }
  const given = Object.keys(key)
  if (given.length !== keyColumns.length) throw invalidKey('exactly the key columns')
  return Object.fromEntries(
    keyColumns.map((column) => {
      if (!Object.hasOwn(key, column)) throw invalidKey('exactly the key columns')
      return [column, valueText(key[column])]
    }),
  )
}

/** One value as text. */
export function valueText(value: unknown): string {
  if (typeof value === 'string') {
    // No column holds these, and they would fail inside the JSON with less to say.
    if (!isStorable(value)) throw invalidKey('valid text without NUL')
    return value
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
      throw invalidKey('a number JavaScript can hold exactly; pass large ones as bigint or text')
    }
    return String(value)
  }
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  throw invalidKey('text, numbers, bigints or booleans; pass other types as text')
}

function invalidKey(expected: string): Error {
  return holdfastError('ROWS_KEY_INVALID', { details: { subject: `expected ${expected}` } })
}
