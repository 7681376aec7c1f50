import { holdfastError } from '../core/errors.ts'

/** Calendar windows; `lifetime` never ends. */
export type Period = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'lifetime'

const periods: Readonly<Record<Period, true>> = {
  minute: true,
  hour: true,
  day: true,
  week: true,
  month: true,
  lifetime: true,
}

/** `but`: not to be named among those that there are. @throws OPTION_INVALID */
export function assertPeriod(per: string, but: readonly Period[] = []): asserts per is Period {
  if (typeof per !== 'string' || !Object.hasOwn(periods, per)) {
    const names = (Object.keys(periods) as Period[]).filter((name) => !but.includes(name))
    throw invalid('per', `per must be one of ${names.join(', ')}`)
  }
}

/** Names of zones that PostgreSQL takes for abbreviations, which have no summer time. */
const abbreviations: ReadonlySet<string> = new Set([
  'CET',
  'EET',
  'EST',
  'HST',
  'MET',
  'MST',
  'WET',
])

/** Offsets are refused: PostgreSQL reads the sign of `+02:00` the other way round. @throws OPTION_INVALID */
export function assertTimeZone(timeZone: string): void {
  if (typeof timeZone === 'string' && abbreviations.has(timeZone.toUpperCase())) {
    throw invalid(
      'timeZone',
      `${timeZone} has no summer time on PostgreSQL: name a place, like Europe/Brussels`,
    )
  }
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

/** 1 to 1000. */
export function countOf(value: number, option: string): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= 1_000) return value
  throw invalid(option, `${option} must be a whole number from 1 to 1000`)
}
