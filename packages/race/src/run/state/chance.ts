/**
 * Values that differ from run to run although nothing else does: the clock's, and keys that were drawn
 * during the run. They are replaced by words, so that two results can be compared as text.
 */
import type { Span } from '../../core/facts.ts'

const clockWord = '‹clock›'
export const newKeyWord = '‹new›'

const instant = /\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?/g

const drawnKey =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[147][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|c[a-z0-9]{24}|[0-9A-HJKMNP-TV-Z]{26})$/

/** Keys that clients draw at random or from the clock: UUIDs, cuids, ULIDs. */
export function looksDrawn(text: string): boolean {
  return drawnKey.test(text)
}

/** Replaces every moment of the run by a word. */
export function maskClock(text: string, span: Span): string {
  if (/^\d{13}$/.test(text)) return within(Number(text), span) ? clockWord : text
  return text.replace(instant, (found) => (isNow(found, span) ? clockWord : found))
}

/** Moments that are there before every run. */
export interface Standing {
  readonly values: ReadonlySet<string>
  /** Parts of a second of these. */
  readonly fractions: ReadonlySet<string>
}

export function standingOf(values: ReadonlySet<string>): Standing {
  return { values, fractions: new Set([...values].flatMap((value) => fractionOf(value) ?? [])) }
}

function fractionOf(text: string): string | undefined {
  return /:\d\d\.(\d*[1-9])/.exec(text)?.[1]
}

/**
 * A value of a column for moments: one with a fraction of a second was not written by a person, so it comes from the
 * clock, even if an hour was added; unless it was there `before`, or has the fraction of one that was and may be made
 * of it.
 */
export function maskMoment(text: string, span: Span, before: Standing | undefined): string {
  if (before?.values.has(text)) return text
  const part = fractionOf(text)
  return part === undefined || before?.fractions.has(part) ? maskClock(text, span) : clockWord
}

/** Whether a cell says nothing but that it is new, or of now. */
export function isWord(text: string | null | undefined): boolean {
  return text === newKeyWord || text === clockWord
}

function isNow(text: string, span: Span): boolean {
  const zoned = /(?:Z|[+-]\d\d(?::?\d\d)?)$/.test(text.slice(10))
  const plain = text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00')
  const time = Date.parse(zoned ? plain : `${plain}Z`)
  if (zoned) return within(time, span)
  // Without a zone it may be anybody's local time: off by some quarters of an hour.
  const quarter = 900_000
  const shift = Math.round((time - span.to) / quarter) * quarter
  return Math.abs(shift) <= 14 * 4 * quarter && within(time - shift, span)
}

function within(time: number, span: Span): boolean {
  return time >= span.from - 2000 && time <= span.to + 2000
}
