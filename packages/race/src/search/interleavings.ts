import type { Choice } from '../core/model.ts'
import type { SerialRun } from './serial-oracle.ts'

/** In how many orders flows of these lengths can be merged: a multinomial. */
export function interleavings(lengths: readonly number[]): bigint {
  let orders = 1n
  let placed = 0n
  for (const length of lengths)
    for (let step = 1n; step <= BigInt(length); step++) {
      placed++
      // The product of `step` successive numbers is divided by each of 1..step: never a remainder.
      orders = (orders * placed) / step
    }
  return orders
}

/** Steps of a flow; of each of its connections, if it uses two at a time, since these have no order either. */
export function lengthsOf(serial: readonly SerialRun[], flow: number): number[] {
  const own = ({ choice }: { readonly choice: Choice }): boolean => choice.flow === flow
  const together = serial.some(({ run: { decisions } }) =>
    decisions.some(({ enabled }) => enabled.filter(own).length > 1),
  )
  const lanes = together
    ? [...new Set(serial.flatMap(({ run }) => run.steps.filter(own).map(({ lane }) => lane)))]
    : [undefined]
  return lanes.map((lane) =>
    Math.max(
      0,
      ...serial.map(({ run: { steps } }) => {
        return steps.filter((step) => own(step) && (lane ?? step.lane) === step.lane).length
      }),
    ),
  )
}
