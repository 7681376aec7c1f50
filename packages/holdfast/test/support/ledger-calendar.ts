/** Calendar windows by the time-zone data of JavaScript: what the ones of the database are compared with. */

import type { Unit } from './ledger-command.ts'

/** From this moment on the clocks of the zone are so far ahead of UTC. */
export interface Offset {
  readonly sinceUs: number
  readonly aheadUs: number
}

export interface WindowAt {
  readonly start: number
  readonly end: number
}

const firstMs = Date.UTC(2023, 5)
const lastMs = Date.UTC(2029, 6)
/** No zone changes its clocks twice within it. */
const stepMs = 21 * 86_400_000
const dayUs = 86_400_000_000
const lengthsUs = { minute: 60_000_000, hour: 3_600_000_000 } as const

const known = new Map<string, readonly Offset[]>()

/** What the clocks of a zone showed from 2023 to 2029, in the order of time. */
export function offsetsOf(zone: string): readonly Offset[] {
  let offsets = known.get(zone)
  if (offsets === undefined) {
    offsets = readOffsets(zone)
    known.set(zone, offsets)
  }
  return offsets
}

function readOffsets(zone: string): Offset[] {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  const aheadAt = (ms: number): number => {
    const [, sign, hours = 0, minutes = 0, seconds = 0] =
      /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(format.format(ms)) ?? []
    const size = Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1_000
    return sign === '-' ? -size : size
  }
  let ahead = aheadAt(firstMs)
  const offsets: Offset[] = [{ sinceUs: -Infinity, aheadUs: ahead * 1_000 }]
  for (let ms = firstMs; ms < lastMs; ms += stepMs) {
    const then = aheadAt(ms + stepMs)
    if (then === ahead) continue
    let [before, after] = [ms, ms + stepMs]
    while (after - before > 1_000) {
      const middle = before + Math.floor((after - before) / 2_000) * 1_000
      if (aheadAt(middle) === ahead) before = middle
      else after = middle
    }
    ahead = then
    offsets.push({ sinceUs: after * 1_000, aheadUs: ahead * 1_000 })
  }
  return offsets
}

export function aheadUs(zone: string, us: number): number {
  return offsetsOf(zone).findLast(({ sinceUs }) => sinceUs <= us)?.aheadUs ?? 0
}

/** The calendar window that contains a moment. */
export function windowAt(unit: Unit, zone: string, us: number): WindowAt {
  const local = us + aheadUs(zone, us)
  if (unit === 'minute' || unit === 'hour') {
    const start = us - modulo(local, lengthsUs[unit])
    return { start, end: start + lengthsUs[unit] }
  }
  const [since, until] = datesAround(unit, local)
  return { start: firstMoment(since, zone), end: firstMoment(until, zone) }
}

/** When the dates of a local time's window begin, on a clock that is never changed. */
function datesAround(unit: 'day' | 'week' | 'month', local: number): [number, number] {
  const day = local - modulo(local, dayUs)
  if (unit === 'day') return [day, day + dayUs]
  if (unit === 'week') {
    // The first day of 1970 was a Thursday.
    const monday = day - modulo(day / dayUs + 3, 7) * dayUs
    return [monday, monday + 7 * dayUs]
  }
  const date = new Date(day / 1_000)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return [Date.UTC(year, month) * 1_000, Date.UTC(year, month + 1) * 1_000]
}

/** The first moment at which the clocks show this local time or a later one. */
function firstMoment(local: number, zone: string): number {
  const offsets = offsetsOf(zone)
  for (const [at, { sinceUs, aheadUs: ahead }] of offsets.entries()) {
    const moment = Math.max(sinceUs, local - ahead)
    if (moment < (offsets[at + 1]?.sinceUs ?? Infinity)) return moment
  }
  throw new Error('a clock that never gets there')
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}
