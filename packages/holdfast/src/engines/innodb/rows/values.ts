import type { Value } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { isStorable } from '../../../core/storable.ts'
import type { KeyFields, SetValues } from '../../../rows/engine.ts'
import type { TableFacts } from '../schema/table-facts.ts'
import type { ServerFacts } from '../server.ts'
import { notSent, tooNarrowFor } from '../sql/charset.ts'
import { type Fragment, quoteIdentifier, valuesOf } from '../sql/text.ts'
import { keyValue } from './key-value.ts'
import { foldedName } from './table-fit.ts'

/** A table, and the connection over which it is used. */
export interface UsedTable {
  readonly types: TableFacts['types']
  readonly charsets: ServerFacts['charsets']
}

/** @throws ROWS_KEY_INVALID */
export function keyCondition(
  key: KeyFields,
  { types, charsets }: UsedTable,
  alias: string,
  subject: string,
): Fragment {
  const refused = (why: string): Error =>
    holdfastError('ROWS_KEY_INVALID', { details: { subject: `${subject}: ${why}` } })
  const conditions = Object.entries(key).map(([column, text]) => {
    const value = keyValue(text, types.get(foldedName(column)) ?? '')
    if ('expected' in value) throw refused(`${value.expected} expected`)
    const narrow = tooNarrowFor(text, charsets)
    if (narrow !== undefined) throw refused(notSent(narrow))
    return { text: `${alias}.${quoteIdentifier(column)} = ${value.text}`, values: value.values }
  })
  const text = conditions.map((each) => each.text).join(' AND ')
  return { text, values: valuesOf(conditions) }
}

/** The assignments of an update. @throws OPTION_INVALID */
export function assignments(set: SetValues, { types, charsets }: UsedTable): readonly Fragment[] {
  return Object.entries(set).map(([column, value]) => {
    const { text, values } = valueOf(value, types.get(foldedName(column)) ?? '')
    for (const each of values) {
      const narrow = typeof each === 'string' ? tooNarrowFor(each, charsets) : undefined
      if (narrow !== undefined) throw invalid(`set has a text with ${notSent(narrow)}`)
    }
    return { text: `${quoteIdentifier(column)} = ${text}`, values }
  })
}

function bound(value: Value): Fragment {
  return { text: '?', values: [value] }
}

function valueOf(value: unknown, type: string): Fragment {
  switch (typeof value) {
    case 'string':
      if (!isStorable(value)) break
      return bound(value)
    case 'number':
      if (!Number.isFinite(value)) break
      return bound(value)
    case 'bigint':
      // The digits of a text would be its bits. MySQL takes what is cast once for a number with a sign.
      if (type.startsWith('bit'))
        return { text: 'CAST(CAST(? AS CHAR) AS UNSIGNED)', values: [String(value)] }
      return bound(String(value))
    case 'boolean':
      return bound(value)
    case 'object':
      return value === null ? bound(null) : objectValue(value)
    case 'undefined':
    case 'function':
    case 'symbol':
  }
  throw invalid('set has a value that no column can have')
}

function objectValue(value: object): Fragment {
  if (value instanceof Uint8Array)
    return { text: 'UNHEX(?)', values: [Buffer.from(value).toString('hex')] }
  if (value instanceof Date) {
    // A column of these products has no time zone, and the client's may be another one.
    throw invalid(
      "set has a Date; pass it as text, as the column is to have it: '2026-01-31 12:00'",
    )
  }
  return bound(JSON.stringify(value))
}

function invalid(subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option: 'set', subject } })
}
