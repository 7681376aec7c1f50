import type { Statement } from '../../../core/driver.ts'
import type { Columns } from '../../../rows/engine.ts'
import { type Fragment, limited, quoteIdentifier, valuesOf } from '../sql/text.ts'

/** What is done about a row that somebody else has. */
const clause = {
  wait: 'FOR UPDATE',
  nowait: 'FOR UPDATE NOWAIT',
  skip: 'FOR UPDATE SKIP LOCKED',
} as const

function columnsText(columns: Columns): string {
  if (columns === undefined) return ', t.*'
  return columns.map((column) => `, t.${quoteIdentifier(column)}`).join('')
}

function versionText(versionColumn: string | undefined): string {
  if (versionColumn === undefined) return ''
  return `, CAST(t.${quoteIdentifier(versionColumn)} AS CHAR) AS \`#version\``
}

/** Rows of one table, each by a condition that at most one row fulfils. */
export interface RowReading {
  /** The table as `t`, and by which index its rows are found: another one, or none, would lock other rows. */
  readonly from: string
  /** By their places among the keys, in the order of locking. */
  readonly conditions: readonly (readonly [at: number, condition: Fragment])[]
  readonly how: keyof typeof clause | 'plain'
  readonly columns: Columns
  readonly versionColumn: string | undefined
  readonly limitMs: number | undefined
}

/**
 * Reads or locks rows one by one. The order of locking is that of the access path and not of ORDER BY, and what is
 * scanned is locked; by a unique key only the row itself is, and nothing where there is none at READ COMMITTED.
 */
export function readRows(reading: RowReading): Statement {
  const { from, conditions, how, columns, versionColumn, limitMs } = reading
  const { before, hint } = limited(limitMs)
  const selects = conditions.map(([at, condition], place) => {
    const hinted = place === 0 ? hint : ''
    const locking = how === 'plain' ? '' : ` ${clause[how]}`
    return `SELECT ${hinted}${at} AS \`#at\`${versionText(versionColumn)}${columnsText(columns)} FROM ${from} WHERE ${condition.text}${locking}`
  })
  const text =
    selects.length === 1
      ? (selects[0] ?? '')
      : selects.map((each) => `(${each})`).join(' UNION ALL ')
  return { text: before + text, values: valuesOf(conditions.map(([, condition]) => condition)) }
}

/** Changes a row that is locked already, if it has this version, and counts that up. */
export function updateRow(
  from: string,
  condition: Fragment,
  sets: readonly Fragment[],
  { column, version }: { readonly column: string; readonly version: string },
): Statement {
  const counted = quoteIdentifier(column)
  const all = [...sets.map(({ text }) => text), `t.${counted} = t.${counted} + 1`].join(', ')
  const text = `UPDATE ${from} SET ${all} WHERE ${condition.text} AND CAST(t.${counted} AS CHAR) = ?`
  return { text, values: [...valuesOf([...sets, condition]), version] }
}
