import type { Random } from './random.ts'

/** True in so many of a hundred. */
export function chance(random: Random, percent: number): boolean {
  return random.integer(1, 100) <= percent
}

/** One of them, the heavier the likelier. */
export function pick<T>(random: Random, weighted: readonly (readonly [number, T])[]): T {
  const all = weighted.reduce((sum, [weight]) => sum + weight, 0)
  let left = random.integer(1, all)
  for (const [weight, item] of weighted) {
    left -= weight
    if (left <= 0) return item
  }
  throw new Error('nothing to pick from')
}
