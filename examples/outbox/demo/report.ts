import type { Measured } from './measure.ts'

/** The two runs side by side. */
export function table(byHand: Measured, holdfast: Measured): string {
  const row = (label: string, value: (run: Measured) => number): string =>
    `${label.padEnd(28)}${String(value(byHand)).padStart(12)}${String(value(holdfast)).padStart(12)}`
  return [
    `${''.padEnd(28)}${'by hand'.padStart(12)}${'Holdfast'.padStart(12)}`,
    row('messages', ({ messages }) => messages),
    row('delivered', ({ delivered }) => delivered),
    row('delivered more than once', ({ deliveredTwice }) => deliveredTwice),
    row('cents charged too much', ({ centsTooMuch }) => centsTooMuch),
  ].join('\n')
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults(byHand: Measured, holdfast: Measured): string[] {
  return [
    ...(byHand.deliveredTwice === 0 ? ['by hand, nothing was delivered twice'] : []),
    ...(holdfast.deliveredTwice === 0
      ? []
      : [`Holdfast delivered ${holdfast.deliveredTwice} twice`]),
    ...(holdfast.delivered === holdfast.messages ? [] : ['Holdfast did not deliver everything']),
  ]
}
