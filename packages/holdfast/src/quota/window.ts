import { type Duration, durationMs } from '../core/options/duration.ts'
import { assertPeriod, assertTimeZone, invalid, type Period } from '../ledger/calendar.ts'
import { type Amount, amountText, flags, type Line } from '../ledger/operation.ts'
import { burstOf, everyUs } from '../ledger/rate.ts'

/** What a quota counts, and over which time: exactly one of the three. */
export type Window = CalendarWindow | RollingWindow | RateWindow

/** Calendar windows in a named time zone. Weeks begin on Monday. */
export interface CalendarWindow extends Without<'rolling' | 'rate' | 'burst'> {
  readonly per: Period
  /** @defaultValue 'UTC' */
  readonly timeZone?: string
}

/** Exactly the last so much time, at any moment. It has no holds. */
export interface RollingWindow extends Without<'per' | 'timeZone' | 'rate' | 'burst'> {
  readonly rolling: Duration
}

/** A rate: `limit` in this time, spread evenly (GCRA). */
export interface RateWindow extends Without<'per' | 'timeZone' | 'rolling'> {
  readonly rate: Duration
  /** How many may come at once. @defaultValue limit */
  readonly burst?: Amount
}

/** Of the other windows: beside this one they are refused. */
type Without<Option extends string> = { readonly [_ in Option]?: undefined }

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
  const given = (['per', 'rolling', 'rate'] as const).filter((each) => options[each] !== undefined)
  if (given.length !== 1) throw invalid('per', 'a quota has one of per, rolling and rate')
  const { timeZone: zone, burst: most } = options
  if (zone !== undefined && given[0] !== 'per') throw invalid('timeZone', 'timeZone goes with per')
  if (most !== undefined && given[0] !== 'rate') throw invalid('burst', 'burst goes with rate')
  if (options.rolling !== undefined) {
    const rollingMs = durationMs(options.rolling, 'rolling')
    return {
      rollingMs,
      line: (allowance) => ({ allowance, ttlMs: rollingMs, flags: flags.rolling }),
    }
  }
  if (options.rate !== undefined) {
    const rateUs = BigInt(durationMs(options.rate, 'rate')) * 1_000n
    const burst = options.burst === undefined ? undefined : amountText(options.burst, 'burst')
    return {
      rollingMs: undefined,
      line: (limit) => ({
        allowance: burstOf(burst, limit),
        everyUs: everyUs(rateUs, BigInt(limit)),
      }),
    }
  }
  const { per, timeZone = 'UTC' } = options
  assertPeriod(per)
  if (per === 'lifetime') return { rollingMs: undefined, line: (allowance) => ({ allowance }) }
  assertTimeZone(timeZone)
  return { rollingMs: undefined, line: (allowance) => ({ allowance, unit: per, zone: timeZone }) }
}
