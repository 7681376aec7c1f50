/** When to stop: after a number of rounds, or when a time is up. */
export interface Budget {
  /** Whether another round may start after `done` of them. */
  allows(done: number): boolean
}

export function rounds(count: number): Budget {
  return { allows: (done) => done < count }
}

/** Counts from now, and always allows a first round. */
export function seconds(length: number): Budget {
  const until = performance.now() + length * 1_000
  return { allows: (done) => done === 0 || performance.now() < until }
}
