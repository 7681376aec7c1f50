/** A ratio as we report it: the middle of its rounds, and what nine of ten lie above and below. */
export interface Summary {
  readonly median: number
  readonly p10: number
  readonly p90: number
}

export function summarise(samples: readonly number[]): Summary {
  return {
    median: quantile(samples, 0.5),
    p10: quantile(samples, 0.1),
    p90: quantile(samples, 0.9),
  }
}

/** Between two samples by straight line. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * q
  const [below, above] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]]
  if (below === undefined || above === undefined) throw new RangeError('there are no samples')
  return below + (above - below) * (at - Math.floor(at))
}
