import type { Random } from './random.ts'

/** Picks a number from 0 to `count - 1`, the n-th with a weight of 1 / (n + 1): few are wanted by most. */
export function zipf(count: number): (random: Random) => number {
  const sums: number[] = []
  let sum = 0
  for (let rank = 1; rank <= count; rank += 1) {
    sum += 1 / rank
    sums.push(sum)
  }
  const fine = 2 ** 30
  return (random) => {
    const wanted = (random.integer(0, fine - 1) / fine) * sum
    let [low, high] = [0, count - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] ?? sum) > wanted) high = middle
      else low = middle + 1
    }
    return low
  }
}
