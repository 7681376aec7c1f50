import { quantile } from '../harness/summary.ts'

/** How long calls take while so many are under way. */
export interface Latencies {
  readonly p50Ms: number
  readonly p99Ms: number
}

export async function latenciesOf(
  operation: () => Promise<unknown>,
  { callers, ms }: { readonly callers: number; readonly ms: number },
): Promise<Latencies> {
  const taken: number[] = []
  const until = performance.now() + ms
  const call = async (): Promise<void> => {
    for (let began = performance.now(); began < until; began = performance.now()) {
      await operation()
      taken.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return { p50Ms: quantile(taken, 0.5), p99Ms: quantile(taken, 0.99) }
}
