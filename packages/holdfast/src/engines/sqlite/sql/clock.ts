/**
 * The machine's clock in microseconds since 1970, which SQLite knows to the millisecond: the same wherever it stands in one
 * statement. A statement that decides by it comes after the wait for the right to write.
 */
export const nowUs = `(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000)`

/** Between two moments that the clock tells apart. */
export const clockStepUs = 1_000

/** A span, as it is bound. */
export function spanOf(ms: number): number {
  return Math.round(ms * 1_000)
}

/** A moment as the Date that contains it; nothing of one that never was. */
export function dateOf(us: unknown): Date | undefined {
  const moment = Number(us)
  return moment > 0 ? new Date(Math.floor(moment / 1_000)) : undefined
}

/** Nothing of NULL. However the connection was opened: as a number, or as a bigint. */
export function numberIn(
  row: Readonly<Record<string, unknown>> | undefined,
  column: string,
): number | undefined {
  const value = row?.[column]
  return value === null || value === undefined ? undefined : Number(value)
}
