import { amountOf, type Terms } from './terms.ts'
import { granted, type LimitVerdict, refused } from './verdict.ts'

/** What a row means at this moment, if nothing is used; see `look_at_limit`. */
export function peeked(
  row: readonly number[],
  isRate: boolean,
  terms: Terms,
  cost: number,
): LimitVerdict {
  if (isRate) return peekedAtRate(row, terms, cost)
  const [clockUs = 0, used = 0] = row
  const standing = { clockUs, used }
  const fits = used + amountOf(terms, cost) <= terms.most
  return fits ? granted(terms, false, standing) : refused(terms, false, standing, cost)
}

/**
 * A row of another limit, or of a clock that was ahead, is written anew by the first call that meets it, and a look does
 * not do that: what it tells comes true either way.
 */
function peekedAtRate(
  [now = 0, free = 0, unit = 1]: readonly number[],
  terms: Terms,
  cost: number,
): LimitVerdict {
  const { most } = terms
  const left = Math.max(0, free - now)
  const isAsItIs = unit === terms.unit && left <= most
  const used = isAsItIs ? left : Math.min(-scaled(-left, terms.unit, unit), most)
  const amount = amountOf(terms, cost)
  const standing = { clockUs: now, used }
  const fits = used + amount <= most
  const told = fits ? granted(terms, true, standing) : refused(terms, true, standing, cost)
  if (isAsItIs) return told
  const resetsAt = later(told.resetsAt, free)
  if (told.ok || told.retryAt === undefined) return { ...told, resetsAt }
  const untouchedUs = free - scaled(most - amount, unit, terms.unit)
  return { ...told, resetsAt, retryAt: later(told.retryAt, untouchedUs) }
}

function later(at: Date, us: number): Date {
  return new Date(Math.max(Number(at), Math.ceil(us / 1_000)))
}

/** `amount * by / of`, rounded down. */
function scaled(amount: number, by: number, of: number): number {
  const [whole, part] = [BigInt(amount) * BigInt(by), BigInt(of)]
  // BigInt rounds towards zero.
  return Number((whole < 0n ? whole - part + 1n : whole) / part)
}
