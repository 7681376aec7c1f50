import { holdfastError } from '../core/errors.ts'

export { assertTimeZone } from '../core/options/time-zone.ts'

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

export function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}

/** 1 to 1000. */
export function countOf(value: number, option: string): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= 1_000) return value
  throw invalid(option, `${option} must be a whole number from 1 to 1000`)
}
