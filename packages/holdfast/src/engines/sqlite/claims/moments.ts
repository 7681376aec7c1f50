import type { Value } from '../../../core/driver.ts'
import type { Fragment } from '../sql/text.ts'

/**
 * Moments in tables of the caller's. SQLite has no type for them: a column is declared as a number or as something else,
 * and rows have milliseconds or seconds since 1970, or text in UTC. Each is read; what is written is milliseconds where
 * the column is a number, and text as CURRENT_TIMESTAMP writes it, with milliseconds, anywhere else.
 */
export type MomentKind = 'number' | 'text'

/** By how the column was declared. */
export function momentKind(declared: string): MomentKind {
  return /INT|REAL|FLOA|DOUB|NUM|DEC/i.test(declared) ? 'number' : 'text'
}

export const nowMs = `CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)`

/** Milliseconds since 1970 from here on are after March 1973, and seconds up to here end in the year 5138. */
const mostSeconds = '100000000000'

/** Milliseconds since 1970, of whatever the column has; NULL of what is no moment. */
export function msOf(column: string): string {
  return `(CASE typeof(${column}) WHEN 'text' THEN CAST(ROUND(unixepoch(${column}, 'subsec') * 1000) AS INTEGER)
  ELSE IIF(ABS(${column}) < ${mostSeconds}, ${column} * 1000, ${column}) END)`
}

/** Whether it is over. The first half is what an index can be asked: text begins with its day, in any zone. */
export function isPast(column: string, kind: MomentKind): string {
  const most = kind === 'number' ? nowMs : `date('now', '+2 days')`
  return `(${column} <= ${most} AND ${msOf(column)} <= ${nowMs})`
}

/** A text that SQLite adds to a moment. */
function later(ms: number): string {
  return `+${(Math.max(0, ms) / 1_000).toFixed(3)} seconds`
}

const textFormat = `'%Y-%m-%d %H:%M:%f'`

/** So many milliseconds from now. */
export function momentIn(kind: MomentKind, ms: number): Fragment {
  if (kind === 'number') return { text: `(${nowMs} + ?)`, values: [Math.ceil(ms)] }
  return { text: `strftime(${textFormat}, 'now', ?)`, values: [later(ms)] }
}

/** The same in the form that the row has. */
export function momentLike(column: string, kind: MomentKind, ms: number): Fragment {
  const whole: Value = Math.ceil(ms)
  if (kind === 'number') {
    const text = `IIF(ABS(${column}) < ${mostSeconds}, (${nowMs} + ? + 999) / 1000, ${nowMs} + ?)`
    return { text, values: [whole, whole] }
  }
  const text = `IIF(${column} GLOB '*T*Z', strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?), strftime(${textFormat}, 'now', ?))`
  return { text, values: [later(ms), later(ms)] }
}
