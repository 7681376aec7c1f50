import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import { checkFates } from './check-fates.ts'
import { checkKeys } from './check-keys.ts'
import type { Event, Sequential } from './check-linearizable.ts'
import { Findings } from './findings.ts'

export interface Seat {
  readonly room: string
  readonly id: string
}

/** Check-then-insert under a lock: never more than fit, whoever was told what. */
export function checkGuard(
  operations: readonly Operation[],
  seats: readonly Seat[],
  perRoom: number,
): Violation[] {
  const findings = new Findings('guard')
  for (const [room, taken] of grouped(seats, (seat) => seat.room)) {
    if (taken.length > perRoom) {
      findings.add('bound_crossed', `${taken.length} seats in ${room}, which has ${perRoom}`)
    }
  }
  const times = new Map([...grouped(seats, ({ id }) => id)].map(([id, rows]) => [id, rows.length]))
  checkFates(findings, operations, times)
  checkKeys(findings, eventsOf(operations, times), roomOf(perRoom))
  return findings.violations
}

interface Sitting {
  readonly id: string
  readonly outcome: 'ok' | 'refused' | 'unknown'
}

/** A failed attempt has not happened. Of an unknown one the table says whether it did. */
function eventsOf(
  operations: readonly Operation[],
  times: ReadonlyMap<string, number>,
): Map<string, Event<Sitting>[]> {
  const happened = operations.filter(
    ({ outcome, id = '' }) => outcome !== 'failed' && (outcome !== 'unknown' || times.has(id)),
  )
  const events = happened.map(({ key, id = '', began, ended, outcome, attempt }) => ({
    key,
    event: {
      began,
      ended,
      step: { id, outcome: outcome as Sitting['outcome'] },
      optional: outcome === 'unknown',
      name: `${attempt} ${outcome}`,
    },
  }))
  return new Map(
    [...grouped(events, ({ key }) => key)].map(([key, some]) => [
      key,
      some.map(({ event }) => event),
    ]),
  )
}

function roomOf(perRoom: number): Sequential<ReadonlySet<string>, Sitting> {
  return {
    initial: new Set(),
    next(seats, { id, outcome }) {
      if (seats.has(id)) return outcome === 'refused' ? undefined : seats
      const fits = seats.size < perRoom
      if (outcome === 'refused') return fits ? undefined : seats
      return fits ? new Set([...seats, id]) : undefined
    },
    nameOf: (seats) => [...seats].toSorted((a, b) => a.localeCompare(b)).join(','),
  }
}
