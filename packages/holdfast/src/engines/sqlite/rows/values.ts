import type { Value } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { isStorable } from '../../../core/storable.ts'
import type { SetValues } from '../../../rows/engine.ts'
import { type Fragment, quoteIdentifier } from '../sql/text.ts'

/** The assignments of an update. @throws OPTION_INVALID */
export function assignments(set: SetValues): readonly Fragment[] {
  return Object.entries(set).map(([column, value]) => {
    const { text, values } = valueOf(value)
    return { text: `${quoteIdentifier(column)} = ${text}`, values }
  })
}

function bound(value: Value): Fragment {
  return { text: '?', values: [value] }
}

function valueOf(value: unknown): Fragment {
  switch (typeof value) {
    case 'string':
      if (!isStorable(value)) break
      return bound(value)
    case 'number':
      if (!Number.isFinite(value)) break
      return bound(value)
    case 'bigint':
      if (BigInt.asIntN(64, value) !== value) break
      return { text: 'CAST(? AS INTEGER)', values: [String(value)] }
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
    return { text: 'unhex(?)', values: [Buffer.from(value).toString('hex')] }
  if (value instanceof Date) {
    // Some keep them as text, others as a number of seconds or milliseconds.
    throw invalid('set has a Date; pass it as the column is to have it: a text or a number')
  }
  return bound(JSON.stringify(value))
}

function invalid(subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option: 'set', subject } })
}
