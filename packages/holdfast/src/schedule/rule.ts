import { Cron } from 'croner'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { assertTimeZone } from '../core/options/time-zone.ts'

/** When a schedule ticks. Neither of them: only when it is asked to, by `fireAt` or `runNow`. */
export type When =
  | {
      /** Five fields, or six with seconds in front, or `@daily` and the like. */
      readonly cron: string
      /** An IANA name such as `America/Santiago`. @defaultValue 'UTC' */
      readonly timeZone?: string
      readonly every?: undefined
    }
  | {
      /** Ticks at every multiple of this since 1970, so that all processes agree. */
      readonly every: Duration
      readonly cron?: undefined
      readonly timeZone?: undefined
    }
  | { readonly cron?: undefined; readonly every?: undefined; readonly timeZone?: undefined }

/** The ticks of a schedule, as a pure function of the time it is given. In milliseconds. */
export interface Rule {
  /** The latest ticks up to this moment, itself included; oldest first, at most `count`. */
  latest(momentMs: number, count: number): number[]
  /** The first tick after this moment, if there ever is one. */
  next(momentMs: number): number | undefined
}

export function ruleOf(when: When): Rule | undefined {
  if (when.cron !== undefined) {
    const { timeZone = 'UTC' } = when
    assertTimeZone(timeZone)
    return cronRule(when.cron, timeZone)
  }
  return when.every === undefined ? undefined : intervalRule(durationMs(when.every, 'every'))
}

/** What is noted in the database of when a schedule ticks. */
export interface NotedRule {
  readonly cron?: string
  readonly timeZone?: string
  readonly everyMs?: number
  /** By how much its ticks may be delayed on purpose. */
  readonly jitterMs: number
}

/** The rule as JSON, for those who look at the schedule; null if it ticks only when it is asked to. */
export function ruleText(when: When, jitterMs: number): string | null {
  if (when.cron === undefined && when.every === undefined) return null
  const noted: NotedRule =
    when.cron === undefined
      ? { everyMs: durationMs(when.every as Duration, 'every'), jitterMs }
      : { cron: when.cron, timeZone: when.timeZone ?? 'UTC', jitterMs }
  return JSON.stringify(noted)
}

/** The rule that was noted; undefined for one that this version cannot read. */
export function notedRule(
  text: string,
): { readonly rule: Rule; readonly noted: NotedRule } | undefined {
  try {
    const noted = JSON.parse(text) as NotedRule
    const rule =
      noted.cron === undefined
        ? intervalRule(noted.everyMs as number)
        : cronRule(noted.cron, noted.timeZone ?? 'UTC')
    return { rule, noted }
  } catch {
    return undefined
  }
}

function intervalRule(everyMs: number): Rule {
  return {
    latest(momentMs, count) {
      const last = Math.floor(momentMs / everyMs)
      return Array.from({ length: count }, (_, at) => (last - count + 1 + at) * everyMs)
    },
    next: (momentMs) => (Math.floor(momentMs / everyMs) + 1) * everyMs,
  }
}

/** Croner reads `?` as the clock of this machine, and a date as a tick that never comes again. */
const pattern = /^\s*(@[a-z]+|[^?\s]+(\s+[^?\s]+){4,6})\s*$/i

function cronRule(text: string, timeZone: string): Rule {
  if (typeof text !== 'string' || !pattern.test(text))
    throw invalid('cron', 'cron must have five or six fields, and no ?')
  let cron: Cron
  try {
    // Paused: it only computes, and never sets a timer.
    cron = new Cron(text, { timezone: timeZone, paused: true })
  } catch (error) {
    throw invalid('cron', 'cron cannot be read', error)
  }
  return {
    latest: (momentMs, count) =>
      cron
        // Its ticks are whole seconds, and it looks strictly before.
        .previousRuns(count, new Date(Math.floor(momentMs / 1_000) * 1_000 + 1_000))
        .map((tick) => tick.getTime())
        .toReversed(),
    next: (momentMs) => cron.nextRun(new Date(momentMs))?.getTime(),
  }
}

function invalid(option: string, subject: string, cause?: unknown): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject }, cause })
}
