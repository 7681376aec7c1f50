import { type Duration, durationMs } from '../core/options/duration.ts'
import type { LimitWindow } from '../engines/postgres/rate-limit/rate-limit.ts'
import { assertPeriod, assertTimeZone, invalid, type Period } from '../ledger/calendar.ts'
import { burstOf, everyUs } from '../ledger/rate.ts'

/** What a rate limit counts, and over which time: one of the two. */
export type LimitSpan = LimitPer | LimitRate

/** Calendar windows in a named time zone. Weeks begin on Monday. */
export interface LimitPer extends Without<'rate' | 'burst'> {
  readonly per: Exclude<Period, 'lifetime'>
  /** @defaultValue 'UTC' */
  readonly timeZone?: string
}

/** A rate: `limit` in this time, spread evenly (GCRA). */
export interface LimitRate extends Without<'per' | 'timeZone'> {
  readonly rate: Duration
  /** How many may come at once. @defaultValue limit */
  readonly burst?: number
}

/** Not with this one. Rolling windows need a row for each use: those are the quota's. */
type Without<Option extends string> = { readonly [_ in Option | 'rolling']?: undefined }

/**
 * A limit in the unit of the table: of a window what is counted, of a rate microseconds in which that comes back.
 */
export interface Terms {
  /** What the caller declared. */
  readonly limit: number
  /** What may be used up of an empty row. */
  readonly most: number
  /** What one of the caller's units is. */
  readonly unit: number
}

/** How the limit of one key is to be counted. */
export interface Counting {
  /** Nothing, if it is a rate. */
  readonly window: LimitWindow | undefined
  terms(limit: number): Terms
}

/** A cost in the unit of the table. Of one that is more than a whole limit no more is said than that: it has no end. */
export function amountOf({ most, unit }: Terms, cost: number): number {
  return Math.min(cost * unit, most + 1)
}

/** What a double holds exactly, as a time: 285 years in microseconds. */
const longestUs = 2 ** 53

/** @throws OPTION_INVALID */
export function countingOf(options: LimitSpan & { readonly rolling?: unknown }): Counting {
  const { per, rate, rolling, timeZone, burst } = options
  if (rolling !== undefined) {
    throw invalid(
      'rolling',
      'a rate limit keeps no single uses: take rate, or a quota with rolling',
    )
  }
  if ((per === undefined) === (rate === undefined)) {
    throw invalid('per', 'a rate limit has one of per and rate')
  }
  if (timeZone !== undefined && per === undefined)
    throw invalid('timeZone', 'timeZone goes with per')
  if (burst !== undefined && rate === undefined) throw invalid('burst', 'burst goes with rate')
  return rate === undefined ? inWindow(per as string, timeZone) : atRate(rate, burst)
}

function inWindow(per: string, zone = 'UTC'): Counting {
  if (per === 'lifetime') throw invalid('per', 'what counts for ever is a quota: use hf.quota')
  assertPeriod(per, ['lifetime'])
  assertTimeZone(zone)
  return { window: { unit: per, zone }, terms: (limit) => ({ limit, most: limit, unit: 1 }) }
}

function atRate(rate: Duration, burst: number | undefined): Counting {
  const rateUs = BigInt(durationMs(rate, 'rate')) * 1_000n
  if (burst !== undefined) assertAmount(burst, 'burst')
  return {
    window: undefined,
    terms(limit) {
      const unit = Number(everyUs(rateUs, BigInt(limit)))
      const most =
        unit * Number(burstOf(burst === undefined ? undefined : String(burst), String(limit)))
      if (most < longestUs) return { limit, most, unit }
      throw invalid('rate', 'a burst takes more than 285 years to come back')
    },
  }
}

/** @throws OPTION_INVALID */
export function assertAmount(
  value: unknown,
  option: string,
  least = 1,
  most: number = Number.MAX_SAFE_INTEGER,
): asserts value is number {
  const amount = value as number
  if (Number.isSafeInteger(amount) && amount >= least && amount <= most) return
  throw invalid(option, `${option} must be a whole number from ${least} to ${most}`)
}
