import type { ColumnValue, OverTable, Waiting } from '../../../claims/engine.ts'
import { tableUnfit, isHole } from '../../../core/errors/claim-finding.ts'
import type { Driver, Executor } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { keyValue } from '../rows/key-value.ts'
import { serverOf } from '../server.ts'
import { showTable, type TableFacts, tableFacts } from '../schema/table-facts.ts'
import { notSent, tooNarrowFor } from '../sql/charset.ts'
import { forcing } from '../sql/forcing.ts'
import { type Fragment, quoteIdentifier, tableText, valuesOf } from '../sql/text.ts'
import { charsetFindings, columnFindings, tableFindings } from './column-findings.ts'
import { fittingIndex, type IndexUse } from './fitting-index.ts'
import { assertValues } from './status-values.ts'

/** Binary keys are told as hexadecimal digits. */
const binary = /^(?:var)?binary\b/

export function columnOf(column: string): string {
  return `t.${quoteIdentifier(column)}`
}

/** A table of the user's, as statements of claims see it. Names of our own begin with `#`. */
export class ClaimTable {
  readonly text: string
  readonly facts: TableFacts
  readonly #key: readonly string[]
  readonly #charsets: readonly string[]

  constructor(
    { table, key }: Pick<Waiting, 'table' | 'key'>,
    facts: TableFacts,
    charsets: readonly string[],
  ) {
    this.text = tableText(table)
    this.facts = facts
    this.#key = key
    this.#charsets = charsets
  }

  typeOf(column: string): string {
    return this.facts.types.get(column) ?? ''
  }

  /** A value of a column: compared as it is meant, because `'done' = 0` is true. @throws OPTION_INVALID */
  value(column: string, value: ColumnValue): Fragment {
    if (value === null) return { text: 'NULL', values: [] }
    const found = keyValue(String(value), this.typeOf(column))
    const narrow = tooNarrowFor(String(value), this.#charsets)
    if ('text' in found && found.text !== 'NULL' && narrow === undefined) return found
    const expected = 'expected' in found ? found.expected : 'a smaller number'
    const subject =
      narrow === undefined
        ? `a value of the column ${column} is none that it can have: ${expected} expected`
        : `a value of the column ${column} has ${notSent(narrow)}`
    throw holdfastError('OPTION_INVALID', { details: { option: 'values', subject } })
  }

  /** `IS NULL` is what SQL calls being equal to null. */
  equals(column: string, value: ColumnValue): Fragment {
    if (value === null) return { text: `${columnOf(column)} IS NULL`, values: [] }
    const { text, values } = this.value(column, value)
    return { text: `${columnOf(column)} = ${text}`, values }
  }

  /** A column of the key, as text. */
  keyText(column: string): string {
    return binary.test(this.typeOf(column))
      ? `HEX(${columnOf(column)})`
      : `CAST(${columnOf(column)} AS CHAR)`
  }

  keyTexts(): string {
    return this.#key.map((column, at) => `${this.keyText(column)} AS \`#key${at}\``).join(', ')
  }

  /** One value of a column of the key, as `keyText` told it. @throws OPTION_INVALID */
  keyValue(column: string, text: string): Fragment {
    if (binary.test(this.typeOf(column))) return { text: 'UNHEX(?)', values: [text] }
    const value = keyValue(text, this.typeOf(column))
    if ('text' in value && tooNarrowFor(text, this.#charsets) === undefined) return value
    const subject = 'key or after has a value that its column cannot have'
    throw holdfastError('OPTION_INVALID', { details: { option: 'key', subject } })
  }

  /** One row. @throws OPTION_INVALID */
  hasKey(key: readonly string[]): Fragment {
    const parts = this.#key.map((column, at) => {
      const { text, values } = this.keyValue(column, key[at] ?? '')
      return { text: `${columnOf(column)} = ${text}`, values }
    })
    return { text: parts.map(({ text }) => text).join(' AND '), values: valuesOf(parts) }
  }

  /** Rows by their keys, and no others are looked at. */
  get byKey(): string {
    const wanted = new Set(this.#key)
    const index = this.facts.indexes.find(
      ({ isUnique, columns }) =>
        isUnique && columns.length === wanted.size && columns.every((column) => wanted.has(column)),
    )
    return index === undefined ? '' : forcing(index)
  }

  /** What gives rows in an order without sorting them, if there is an index for it. */
  inOrder(use: IndexUse): string {
    const index = fittingIndex(this.facts, use)
    return index === undefined ? '' : forcing(index)
  }

  /** All of the row, or the columns that are wanted. */
  columns({ columns }: Waiting): string {
    return columns === undefined ? 't.*' : columns.map(columnOf).join(', ')
  }
}

/**
 * Looks at a table, by statements that open no snapshot. Claims on rows that are locked for nobody, or that are found
 * among all others, would be none.
 *
 * @throws CLAIM_TABLE_UNFIT, OPTION_INVALID, ENGINE_VERSION, ENGINE_SEVERAL_PRIMARIES
 */
export async function claimTable<Tx>(
  driver: Driver<Tx>,
  on: Executor,
  settings: OverTable,
): Promise<ClaimTable> {
  const { layout } = settings
  const { charsets } = await serverOf(driver, on)
  const facts = tableFacts(await on.query(showTable(tableText(layout.table))))
  const findings = [
    ...tableFindings(layout, facts),
    ...columnFindings(settings, facts),
    ...charsetFindings(layout, facts, charsets),
  ]
  const holes = findings.filter(isHole)
  if (holes.length > 0) throw tableUnfit(layout.table.table, holes)
  const table = new ClaimTable(layout, facts, charsets)
  assertValues(layout, table)
  return table
}
