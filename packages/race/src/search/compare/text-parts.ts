/** What in a text may be of chance: times, and words that look as if they were drawn. The rest stands for itself. */

import { isInShort } from '../../core/long-text.ts'

export type Part =
  | { readonly kind: 'plain'; readonly text: string }
  | Time
  /** Long enough to have been drawn at random. */
  | { readonly kind: 'word'; readonly text: string }

export interface Time {
  readonly kind: 'time'
  readonly text: string
  /** In milliseconds; of a time of day without its date, since midnight. */
  readonly at: number
  /** How much is cut off: a second, if it has no fraction of one. */
  readonly grain: number
  readonly ofDay: boolean
}

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000] as const

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/
const instant =
  /\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?|\d{8}T\d{6}(?:\.\d+)?Z?/
const date = /\d{4}-\d\d-\d\d/
const timeOfDay = /\d{1,2}:\d\d:\d\d(?:\.\d+)?/
/** What `Math.random()` draws, once or several times without anything between. */
const fractions = /0\.\d{9,}(?:\.\d{9,})*/
const decimal = /\d+\.\d+(?:e[+-]?\d+)?/
const whole = /\d{10,19}/
const word = /[\w-]{8,}/

const inside = (...all: readonly RegExp[]): string => all.map(({ source }) => source).join('|')
/** Not in the middle of a word. */
const alone = (...all: readonly RegExp[]): string => `(?<![\\w-])(?:${inside(...all)})(?![\\w-])`

// A word may begin before them and go on behind them.
const whereverTheyStand = new RegExp(`(${inside(instant, uuid)})`, 'i')
const others = new RegExp(
  `(${alone(date)}|${alone(timeOfDay)}|${alone(fractions)}|${alone(decimal)}|${alone(whole)}|${inside(word)})`,
  'i',
)

/** A text in pieces, in their order. */
export function partsOf(text: string): readonly Part[] {
  if (isInShort(text)) return [{ kind: 'plain', text }]
  const base64 = /^[\w+/-]{16,}={0,2}$/.test(text) && /[+/]/.test(text) && text.length % 4 === 0
  if (base64 && changesOf(text) >= text.length / 4) return [{ kind: 'word', text }]
  return text.split(whereverTheyStand).flatMap((piece, place): Part[] => {
    if (place % 2 === 1) return [timeOf(piece) ?? { kind: 'word', text: piece }]
    return piece.split(others).flatMap((rest, at): Part[] => {
      if (rest === '') return []
      if (at % 2 === 0) return [{ kind: 'plain', text: rest }]
      const time = timeOf(rest)
      if (time) return [time]
      return [{ kind: isQuantity(rest) ? 'plain' : 'word', text: rest }]
    })
  })
}

const onlyFractions = new RegExp(`^${fractions.source}$`)

/** A number with a fraction is an amount. */
function isQuantity(text: string): boolean {
  return /^\d+\.\d/.test(text) && !onlyFractions.test(text)
}

function timeOf(text: string): Time | undefined {
  if (/^\d{1,2}:/.test(text)) return timeOfDayOf(text)
  if (/^\d{8}T/.test(text)) return named(text, compact(text.replace('T', '')))
  if (/^\d{14}(?:\d{3})?$/.test(text)) {
    const time = named(text, compact(text))
    if (time) return time
  }
  if (/^\d+(?:\.\d+)?$/.test(text)) return epochOf(text)
  return /^\d{4}-\d\d-\d\d/.test(text) ? named(text, text) : undefined
}

/** `20260801101802123` as it is written otherwise. */
function compact(digits: string): string {
  const [, year, month, date, hours, minutes, seconds, rest] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\.?(\d*)/.exec(digits) ?? []
  const fraction = rest === undefined || rest === '' ? '' : `.${rest}`
  return `${year}-${month}-${date}T${hours}:${minutes}:${seconds}${fraction}`
}

function named(text: string, written: string): Time | undefined {
  const zoned = /(?:Z|[+-]\d\d(?::?\d\d)?)$/i.test(written.slice(10))
  const plain = written
    .replace(' ', 'T')
    .replace(/([+-]\d\d)$/, (zone) => (zoned ? `${zone}:00` : zone))
  const whole = written.length === 10 || zoned ? plain : `${plain}Z`
  const at = Date.parse(whole.replace(/(\.\d{3})\d+/, '$1'))
  if (Number.isNaN(at)) return undefined
  return { kind: 'time', text, at, grain: grainOf(at, written), ofDay: false }
}

/** A second, a minute, an hour or a day, if nothing smaller is there; a fraction of a second is exact. */
function grainOf(at: number, written: string): number {
  if (/\.\d*[1-9]/.test(written)) return 0
  return [day, hour, minute].find((unit) => at % unit === 0) ?? second
}

function timeOfDayOf(text: string): Time | undefined {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number)
  if (hours > 24 || minutes > 59 || seconds > 60) return undefined
  const at = hours * hour + minutes * minute + seconds * second
  return { kind: 'time', text, at, grain: text.includes('.') ? 0 : second, ofDay: true }
}

/** From 2001 to 2100, in seconds, milliseconds, microseconds or nanoseconds. */
const [earliest, latest] = [1e12, 4.1e12]

function epochOf(text: string): Time | undefined {
  const number = Number(text)
  const unit = [1e3, 1, 1e-3, 1e-6].find((one) => number * one >= earliest && number * one < latest)
  if (unit === undefined) return undefined
  const grain = unit === 1e3 && !text.includes('.') ? second : 0
  return { kind: 'time', text, at: number * unit, grain, ofDay: false }
}

/** How often it changes between digits, small and capital letters. */
function changesOf(text: string): number {
  const kinds = Array.from(text.replace(/[^0-9a-z]/gi, ''), (one) =>
    /\d/.test(one) ? 0 : /[a-z]/.test(one) ? 1 : 2,
  )
  return kinds.filter((kind, place) => place > 0 && kind !== kinds[place - 1]).length
}

const drawnKey = new RegExp(
  `^(?:${uuid.source}|c[a-z0-9]{24}|[0-9A-HJKMNP-TV-Z]{26}|${fractions.source})$`,
)

/** Whether nobody would write it: then it was drawn, if it is not always the same. */
export function looksDrawn(text: string): boolean {
  if (text.length < 8) return false
  if (drawnKey.test(text)) return true
  if (/^\d+$/.test(text)) return text.length >= 12 && new Set(text).size >= 6
  if (/^(?:[0-9a-f]+|[0-9A-F]+)$/.test(text)) return /\d/.test(text) && /[a-f]/i.test(text)
  const changes = changesOf(text)
  return changes >= 3 && changes * 4 >= text.length
}

/** A word of a language, or a name: what somebody may have written, although it is long. */
export function isReadable(text: string): boolean {
  return /^(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[-_](?:[a-z]+|[A-Z]+|[A-Z][a-z]+))*$/.test(text)
}
