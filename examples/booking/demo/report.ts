import type { Measured } from './measure.ts'
import type { Way } from './worker.ts'

export type Results = Readonly<Record<Way, Measured>>

/** The three runs side by side. */
export function table({ unguarded, byConstraint, guarded }: Results): string {
  const row = (label: string, values: readonly string[]): string =>
    label.padEnd(24) + values.map((value) => value.padStart(16)).join('')
  const of = (value: (run: Measured) => string): string[] =>
    [unguarded, byConstraint, guarded].map((run) => value(run))
  return [
    row('', ['check, insert', 'EXCLUDE', 'Holdfast']),
    row(
      'desks booked twice',
      of(({ desksBookedTwice, desks }) => `${desksBookedTwice} of ${desks}`),
    ),
    row(
      'guests over the limit',
      of(({ guestsOverLimit, guests }) => `${guestsOverLimit} of ${guests}`),
    ),
    row(
      'bookings',
      of(({ booked }) => String(booked)),
    ),
  ].join('\n')
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults({ unguarded, byConstraint, guarded }: Results): string[] {
  const found: string[] = []
  const say = (wrong: boolean, text: string): void => void (wrong && found.push(text))
  say(unguarded.desksBookedTwice === 0, 'no desk was booked twice: the race was not provoked')
  say(unguarded.guestsOverLimit === 0, 'no guest got over the limit: the race was not provoked')
  say(byConstraint.guestsOverLimit === 0, 'with EXCLUDE no guest got over the limit')
  say(byConstraint.desksBookedTwice > 0, 'EXCLUDE: a desk was booked twice')
  say(guarded.desksBookedTwice > 0, 'Holdfast: a desk was booked twice')
  say(guarded.guestsOverLimit > 0, 'Holdfast: a guest got over the limit')
  // Refusing everything would keep both rules, too.
  say(guarded.booked !== guarded.desks + guarded.guests, 'Holdfast: not all got their booking')
  say(guarded.failed > 0, 'Holdfast: requests failed')
  return found
}
