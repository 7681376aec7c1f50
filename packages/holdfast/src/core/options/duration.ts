import { holdfastError } from '../errors.ts'

/** Milliseconds, or a number and a unit: `'500 ms'`, `'30 s'`, `'2 min'`, `'1 h'`, `'7 days'`. */
export type Duration = number | `${number} ${Unit}` | `${number}${Unit}`

type Unit = 'ms' | 's' | 'sec' | 'min' | 'h' | 'hour' | 'hours' | 'd' | 'day' | 'days'

const unitMs: Readonly<Record<Unit, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  min: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
}

/** A duration in whole milliseconds, at least one. `option` is what the error names. */
export function durationMs(duration: Duration, option: string): number {
  const ms = plainMs(duration)
  if (ms !== undefined && Number.isSafeInteger(Math.round(ms)) && ms >= 1) return Math.round(ms)
  throw holdfastError('OPTION_INVALID', {
    details: {
      option,
      subject: `${option} must be at least 1 millisecond: a number, or a text like '2 min' (${Object.keys(unitMs).join(', ')})`,
    },
  })
}

/** In milliseconds, whatever they are; nothing if it is no duration. */
export function plainMs(duration: unknown): number | undefined {
  if (typeof duration === 'number') return duration
  return typeof duration === 'string' ? parsed(duration) : undefined
}

function parsed(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(text) ?? []
  const ms = unitMs[unit as Unit] as number | undefined
  return ms === undefined ? undefined : Number(count) * ms
}

/** As long as a timer can be: about 24 days. A longer one would fire at once. */
export function timerMs(ms: number): number {
  return Math.min(ms, 2 ** 31 - 1)
}
