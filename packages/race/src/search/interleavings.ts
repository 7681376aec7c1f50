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
