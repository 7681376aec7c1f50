/** The condition under which a number may be changed by so much, if what the flow did shows one. */
import type { KnownTable } from '../../core/model.ts'
import { isNumber } from './known.ts'
import { decisionsOn, type Turn } from './turns.ts'
import { sqlName } from '../sql/sql-name.ts'

/** What the flow was seen to decide by. */
export type Bound =
  /** It wrote whatever it saw. */
  | { readonly kind: 'none' }
  | { readonly kind: 'condition'; readonly sql: string }
  /** It refused at times, and by what is not known. */
  | { readonly kind: 'unknown' }

/** Of a number that the flow changes by `by`. */
export function boundOf(
  turns: readonly Turn[],
  flow: number,
  column: string,
  by: number,
  table: KnownTable | undefined,
): Bound {
  const name = sqlName(column)
  const seen = decisionsOn(turns, flow, [column])
  const refused = seen.some(({ wrote }) => !wrote)
  if (by < 0) {
    const fits = seen.every(({ values: [value = 0], wrote }) => wrote === value >= -by)
    if (fits) return { kind: 'condition', sql: `${name} >= ${-by}` }
    return { kind: refused ? 'unknown' : 'none' }
  }
  if (!refused) return { kind: 'none' }
  const limits = (table?.columns ?? []).filter((other) => {
    if (other.name === column || other.key || !isNumber(other)) return false
    const both = decisionsOn(turns, flow, [column, other.name])
    return (
      both.length === seen.length &&
      both.every(({ values: [value = 0, limit = 0], wrote }) => wrote === value + by <= limit)
    )
  })
  const [limit, another] = limits
  return limit === undefined || another !== undefined
    ? { kind: 'unknown' }
    : { kind: 'condition', sql: `${name} + ${by} <= ${sqlName(limit.name)}` }
}
