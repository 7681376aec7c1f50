import { monthlyCalls } from '../src/plan.ts'
import type { Measured, Plan } from './measure.ts'

/** The two runs side by side. */
export function table(naive: Measured, holdfast: Measured): string {
  const row = (label: string, value: (run: Measured) => string | number): string =>
    `${label.padEnd(32)}${cell(value(naive))}${cell(value(holdfast))}`
  return [
    `${''.padEnd(32)}${cell('naive')}${cell('Holdfast')}`,
    row('requests served', ({ served }) => served),
    row('users over the limit', ({ usersOver, users }) => `${usersOver} of ${users}`),
    row('calls over the limit', ({ callsOver }) => callsOver),
    row('requests charged twice', ({ chargedTwice }) => chargedTwice),
    row('credits reserved by nobody', ({ creditsStuck }) => creditsStuck),
    row('users locked out by that', ({ usersLockedOut, users }) => `${usersLockedOut} of ${users}`),
  ].join('\n')
}

function cell(value: string | number): string {
  return String(value).padStart(14)
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults(naive: Measured, holdfast: Measured, plan: Plan): string[] {
  const found: string[] = []
  if (naive.usersOver === 0) found.push('the naive way kept the limit: the race was not provoked')
  if (naive.chargedTwice === 0) found.push('the naive way charged nobody twice')
  if (naive.creditsStuck === 0) found.push('the naive way lost no reservation')
  for (const [what, count] of [
    ['users over the limit', holdfast.usersOver],
    ['requests charged twice', holdfast.chargedTwice],
    ['credits reserved by nobody', holdfast.creditsStuck],
    ['users locked out', holdfast.usersLockedOut],
  ] as const) {
    if (count !== 0) found.push(`Holdfast left ${count} ${what}`)
  }
  // Refusing everything would keep the limit, too.
  if (holdfast.served !== plan.rounds * plan.users * monthlyCalls) {
    found.push('with Holdfast not every user got all the calls there were')
  }
  return found
}
