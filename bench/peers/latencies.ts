import { quantile } from '../harness/summary.ts'
import type { Limiter } from './limiters.ts'

/** How long calls take while so many are under way. */
export interface Latencies {
  readonly p50Ms: number
  readonly p99Ms: number
}

export async function latenciesOf(
  limiter: Limiter,
  {
    key,
    callers,
    ms,
  }: { readonly key: () => string; readonly callers: number; readonly ms: number },
): Promise<Latencies> {
  const taken: number[] = []
  const until = performance.now() + ms
  const call = async (): Promise<void> => {
    for (let began = performance.now(); began < until; began = performance.now()) {
      await limiter.consume(key(), 1)
      taken.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return { p50Ms: quantile(taken, 0.5), p99Ms: quantile(taken, 0.99) }
}
