import { invalid } from './calendar.ts'

/** After so many of its times an unused rate is full, whatever its burst; `forget_windows` counts on it. */
const mostBurst = 1_000n

/** How many may come at once. @throws OPTION_INVALID */
export function burstOf(burst: string | undefined, limit: string): string {
  if (burst === undefined || BigInt(burst) <= BigInt(limit) * mostBurst) return burst ?? limit
  throw invalid('burst', `burst is more than ${mostBurst} times the limit`)
}

/**
 * Microseconds in which one unit comes back, rounded up: the rate is never exceeded. Where rounding
 * would cost more than a hundredth of the limit, the rate is refused.
 *
 * @throws OPTION_INVALID
 */
export function everyUs(rateUs: bigint, limit: bigint): string {
  if (limit === 0n) throw invalid('limit', 'a rate needs a limit above zero')
  const every = (rateUs + limit - 1n) / limit
  if ((every * limit - rateUs) * 100n > rateUs) {
    throw invalid('limit', 'the rate is too fine: count in larger units, or over a longer time')
  }
  return String(every)
}
