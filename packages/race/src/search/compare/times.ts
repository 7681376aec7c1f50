/** Times that differ from run to run: which of them are the same, seen from the clock of their runs. */
import type { Span } from '../../core/facts.ts'
import type { Time } from './text-parts.ts'

/** A time, and the run in which it was. */
export interface Seen {
  readonly time: Time
  readonly span: Span
}

/** How the times of a place move: with the clock, or hardly at all. Neither, if nobody can foretell them. */
export interface Motion {
  readonly withClock: boolean
  readonly hardly: boolean
}

const day = 86_400_000
/** Clocks are read with delay. */
const slackMs = 50

/** What a run lasts cannot be told from its times. */
function toleranceOf(spans: readonly Span[]): number {
  return Math.max(...spans.map(({ from, to }) => to - from)) + slackMs
}

/** From the beginning of its run. */
function distanceOf({ time, span }: Seen): number {
  return time.at - span.from
}

function gapOf(one: number, other: number, ofDay: boolean): number {
  const gap = Math.abs(one - other)
  if (!ofDay) return gap
  const rest = gap % day
  return Math.min(rest, day - rest)
}

const measures: Readonly<Record<keyof Motion, (seen: Seen) => number>> = {
  withClock: distanceOf,
  hardly: ({ time }) => time.at,
}

/** Of the times at one place of two runs of one schedule, without those that both have. */
export function motionOf(one: readonly Seen[], other: readonly Seen[]): Motion {
  if (one.length !== other.length) return { withClock: false, hardly: false }
  const tolerance = toleranceOf([...one, ...other].map(({ span }) => span))
  const agree = (measure: (seen: Seen) => number): boolean => {
    const sorted = (all: readonly Seen[]): Seen[] =>
      all.toSorted((first, second) => measure(first) - measure(second))
    const right = sorted(other)
    return sorted(one).every((left, place) => {
      const paired = right[place] as Seen
      const grain = Math.max(left.time.grain, paired.time.grain)
      const ofDay = left.time.ofDay && paired.time.ofDay
      return gapOf(measure(left), measure(paired), ofDay) <= tolerance + grain
    })
  }
  return { withClock: agree(measures.withClock), hardly: agree(measures.hardly) }
}

/** Which times may be the same. */
export interface Groups {
  /** The same number for those that may be. */
  readonly of: ReadonlyMap<Time, number>
  /** So many stand close to each other that a group has some that are not the same. */
  readonly blurred: boolean
}

export function groupsOf(all: readonly Seen[], motion: Motion): Groups {
  const tolerance = toleranceOf(all.map(({ span }) => span))
  const near = (one: Seen, other: Seen, measure: (seen: Seen) => number, times = 1): boolean => {
    const grain = Math.max(one.time.grain, other.time.grain)
    const ofDay = one.time.ofDay && other.time.ofDay
    return gapOf(measure(one), measure(other), ofDay) <= (tolerance + grain) * times
  }
  const parents = all.map((_, place) => place)
  const root = (place: number): number => {
    let found = place
    while (parents[found] !== found) found = parents[found] as number
    return found
  }
  const used = (['withClock', 'hardly'] as const).filter((name) => motion[name])
  for (const name of used) {
    const measure = measures[name]
    const sorted = [...all.keys()].sort(
      (one, other) => measure(all[one] as Seen) - measure(all[other] as Seen),
    )
    sorted.forEach((place, index) => {
      const next = sorted[(index + 1) % sorted.length] as number
      if (near(all[place] as Seen, all[next] as Seen, measure)) parents[root(place)] = root(next)
    })
  }
  const of = new Map(all.map(({ time }, place) => [time, root(place)]))
  const blurred = all.some((one, place) => {
    const first = all[root(place)] as Seen
    return !used.some((name) => near(one, first, measures[name], 2))
  })
  return { of, blurred }
}
