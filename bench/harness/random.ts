/** A source of choices that a seed repeats exactly. */
export interface Random {
  /** A whole number from `least` to `most`, both included. */
  integer(least: number, most: number): number
  /** `count` different items, in random order. */
  sample<T>(items: readonly T[], count: number): T[]
}

/**
 * Choices for one operation of one run. Taking them by number, and not from a common stream, makes
 * them the same however the operations happen to be spread over workers.
 */
export function randomFor(seed: number, operation: number): Random {
  const next = mulberry32(Math.imul(seed, 0x9e3779b1) ^ Math.imul(operation + 1, 0x85ebca6b))
  const integer = (least: number, most: number): number =>
    least + Math.floor(next() * (most - least + 1))
  return {
    integer,
    sample(items, count) {
      const left = [...items]
      return Array.from({ length: count }, () => left.splice(integer(0, left.length - 1), 1)).flat()
    },
  }
}

/** Small and good enough for choosing keys: numbers from 0 up to 1. */
function mulberry32(state: number): () => number {
  let a = state
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
