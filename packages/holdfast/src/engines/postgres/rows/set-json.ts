import { holdfastError } from '../../../core/errors.ts'
import type { SetValues } from '../../../rows/engine.ts'

/** `JSON.rawJSON`, which the compiler's library does not know yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

/**
 * The values as JSON from which the server makes a typed record. What JSON would drop or turn into
 * null without a word is refused: a column must not lose its value by accident.
 */
export function setJson(set: SetValues): string {
  const ready = Object.entries(set).map(([column, value]) => [column, columnValue(value, column)])
  return JSON.stringify(Object.fromEntries(ready), (key, value: unknown) => {
    if (typeof value === 'bigint') return rawJSON(String(value))
    if (typeof value === 'number' && !Number.isFinite(value)) throw invalidValue(key)
    return value
  })
}

function columnValue(value: unknown, column: string): unknown {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`
  const lost =
    value === undefined ||
    typeof value === 'function' ||
    typeof value === 'symbol' ||
    isNoDate(value)
  if (lost) throw invalidValue(column)
  return value
}

function isNoDate(value: unknown): boolean {
  return value instanceof Date && Number.isNaN(value.getTime())
}

function invalidValue(column: string): Error {
  return holdfastError('OPTION_INVALID', {
    details: { option: 'set', subject: `set: no value that SQL knows for ${column}` },
  })
}
