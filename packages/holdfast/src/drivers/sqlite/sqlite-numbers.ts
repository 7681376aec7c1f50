import type { Row } from '../../core/driver.ts'

/**
 * Rows that were read with all whole numbers as bigints: as numbers where that is exact. Both clients' own numbers are
 * either not exact or an error beyond 2^53. A connection that gives bigints by itself keeps them.
 */
export function exactRows(rows: readonly Row[], keepsBigints: boolean): readonly Row[] {
  if (keepsBigints) return rows
  for (const row of rows as Record<string, unknown>[]) {
    for (const column in row) {
      const value = row[column]
      if (typeof value !== 'bigint') continue
      const number = Number(value)
      if (Number.isSafeInteger(number)) row[column] = number
    }
  }
  return rows
}

/** By the answer to `oneRow`, which may be an array. */
export function givesBigints(row: unknown): boolean {
  return Object.values(row ?? {}).some((value) => typeof value === 'bigint')
}
