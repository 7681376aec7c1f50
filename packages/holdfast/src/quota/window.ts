import { type Duration, durationMs } from '../core/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { type Amount, amountText, flags, type Line } from '../ledger/operation.ts'

/** Calendar windows; `lifetime` never ends. */
export type Period = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'lifetime'

/** What a quota counts, and over which time. */
export type Window =
  /** Calendar windows in a named time zone. Weeks begin on Monday. @defaultValue timeZone: 'UTC' */
  | { readonly per: Period; readonly timeZone?: string }
  /** Exactly the last so much time, at any moment. It has no holds. */
  | { readonly rolling: Duration }
  /**
   * A rate: `limit` in this time, spread evenly (GCRA). `burst` may come at once.
   * @defaultValue burst: limit
   */
  | { readonly rate: Duration; readonly burst?: Amount }

/** A line without the account it is for. */
export type QuotaLine = Omit<Line, 'key' | 'scope'>

export interface WindowLines {
  /** Set for a rolling window: what is used up is a hold that expires after so long. */
  readonly rollingMs: number | undefined
  /** What the window adds to a line, given the limit. */
  line(limit: string): Partial<QuotaLine>
}

/** @throws OPTION_INVALID */
export function windowOf(options: Window): WindowLines {
  if ('rolling' in options) {
    const rollingMs = durationMs(options.rolling, 'rolling')
    return {
      rollingMs,
      line: (allowance) => ({ allowance, ttlMs: rollingMs, flags: flags.rolling }),
    }
  }
  if ('rate' in options) {
    const rateUs = BigInt(durationMs(options.rate, 'rate')) * 1_000n
    const burst = options.burst === undefined ? undefined : amountText(options.burst, 'burst')
    return {
      rollingMs: undefined,
      line: (limit) => ({ allowance: burst ?? limit, everyUs: everyUs(rateUs, BigInt(limit)) }),
    }
  }
  const { per, timeZone = 'UTC' } = options
  if (!(per in periods)) {
    throw invalid('per', `per must be one of ${Object.keys(periods).join(', ')}`)
  }
  if (per === 'lifetime') return { rollingMs: undefined, line: (allowance) => ({ allowance }) }
  assertTimeZone(timeZone)
  return { rollingMs: undefined, line: (allowance) => ({ allowance, unit: per, zone: timeZone }) }
}

const periods: Readonly<Record<Period, true>> = {
  minute: true,
  hour: true,
  day: true,
  week: true,
  month: true,
  lifetime: true,
}

/**
 * Microseconds in which one unit comes back, rounded up: the rate is never exceeded. Where rounding
 * would cost more than a hundredth of the limit, the rate is refused.
 */
function everyUs(rateUs: bigint, limit: bigint): string {
  if (limit === 0n) throw invalid('limit', 'a rate needs a limit above zero')
  const every = (rateUs + limit - 1n) / limit
  if ((every * limit - rateUs) * 100n > rateUs) {
    throw invalid('limit', 'the rate is too fine: count in larger units, or over a longer time')
  }
  return String(every)
}

/** Offsets are refused: PostgreSQL reads the sign of `+02:00` the other way round. */
function assertTimeZone(timeZone: string): void {
  try {
    if (/^[A-Za-z]/.test(timeZone)) {
      new Intl.DateTimeFormat('en', { timeZone })
      return
    }
  } catch {
    // Not a name that is known.
  }
  throw invalid('timeZone', 'timeZone must be a name like America/Santiago')
}

export function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
