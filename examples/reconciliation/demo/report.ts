import type { Measured } from './measure.ts'

/** The two runs side by side. */
export function table(naive: Measured, holdfast: Measured): string {
  const row = (label: string, value: (run: Measured) => string | number): string =>
    `${label.padEnd(36)}${cell(value(naive))}${cell(value(holdfast))}`
  return [
    `${''.padEnd(36)}${cell('try the lock')}${cell('Holdfast')}`,
    row('processes killed at work', ({ killed }) => killed),
    row('nights done right', ({ nightsRight, nights }) => `${nightsRight} of ${nights}`),
    row('nights nobody did', ({ nightsLost }) => nightsLost),
    row('merchants charged more than once', ({ merchantsChargedTwice }) => merchantsChargedTwice),
    row('cents charged too much', ({ centsTooMuch }) => centsTooMuch),
  ].join('\n')
}

function cell(value: string | number): string {
  return String(value).padStart(14)
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults(naive: Measured, holdfast: Measured): string[] {
  const found: string[] = []
  if (naive.merchantsChargedTwice === 0) found.push('the lock that is tried charged nobody twice')
  if (naive.nightsLost === 0) found.push('the lock that is tried lost no night')
  if (holdfast.killed === 0) found.push('with Holdfast nobody was killed at work')
  for (const [what, count] of [
    ['nights nobody did', holdfast.nightsLost],
    ['merchants charged more than once', holdfast.merchantsChargedTwice],
    ['nights that are not right', holdfast.nights - holdfast.nightsRight],
  ] as const) {
    if (count !== 0) found.push(`Holdfast left ${count} ${what}`)
  }
  return found
}
