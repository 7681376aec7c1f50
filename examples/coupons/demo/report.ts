import { perUser } from '../src/coupon.ts'
import { type Measured, max } from './measure.ts'
import type { Way } from './worker.ts'

export type Results = Readonly<Record<Way, Measured>>

/** The three runs side by side. */
export function table({ unguarded, byStatements, ledger }: Results): string {
  const row = (label: string, values: readonly (number | string)[]): string =>
    label.padEnd(26) + values.map((value) => String(value).padStart(16)).join('')
  const of = (value: (run: Measured) => number | string): (number | string)[] =>
    [unguarded, byStatements, ledger].map((run) => value(run))
  return [
    row('', ['count, insert', 'statements', 'Holdfast']),
    row(
      'codes over the limit',
      of(({ codesOverLimit, codes }) => `${codesOverLimit} of ${codes}`),
    ),
    row(
      'users over the limit',
      of(({ usersOverLimit, codes }) => `${usersOverLimit} of ${codes / 2}`),
    ),
    row(
      'requests counted twice',
      of(({ requestsCountedTwice }) => requestsCountedTwice),
    ),
    row(
      'redemptions',
      of(({ redemptions }) => redemptions),
    ),
  ].join('\n')
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults({ unguarded, byStatements, ledger }: Results): string[] {
  const found: string[] = []
  const say = (wrong: boolean, text: string): void => void (wrong && found.push(text))
  say(unguarded.codesOverLimit === 0, 'no code got over its limit: the race was not provoked')
  for (const [name, run] of Object.entries({ statements: byStatements, Holdfast: ledger })) {
    say(run.codesOverLimit > 0, `${name}: a code got over its limit`)
    say(run.usersOverLimit > 0, `${name}: a user got over the limit`)
    say(run.requestsCountedTwice > 0, `${name}: a request was counted twice`)
    say(run.failed > 0, `${name}: requests failed`)
    // Refusing everything would keep the limits, too.
    const expected = (run.codes / 2) * (max + perUser)
    say(run.redemptions !== expected, `${name}: not all that was allowed was redeemed`)
  }
  return found
}
