import { holdfastError } from '../../core/errors.ts'
import { EventCounts } from './event-counts.ts'
import type { MetricFamily } from './metric-family.ts'
import type { Observer } from '../observer.ts'
import { prometheusText, prometheusType } from './prometheus.ts'
import { ServerGauges } from './server-gauges.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'
import type { LockKey } from '../../core/locks/wanted-lock.ts'

/** Settings of a collection of metrics. */
export interface MetricsOptions {
  /** Looks at the server when metrics are asked for, at most once a second. @defaultValue not at all */
  readonly observer?: Observer
  /**
   * What a lock is called in metrics. It must have few values: `credits:{user}`, never the user.
   * @defaultValue the namespace
   */
  readonly lockLabel?: (key: LockKey) => string
  /**
   * How many values a label has at most where users make them up (locks, tables, books, leases,
   * schedules); the others are counted together as `(other)`. @defaultValue 100
   */
  readonly mostValues?: number
}

export const metricsOptions: KnownOptions<MetricsOptions> = {
  observer: 'object',
  lockLabel: 'function',
  mostValues: 'number',
}

/** Counters and histograms of this process, from its events. */
export interface Metrics extends Disposable {
  /** Everything as Prometheus reads it, format 0.0.4. */
  prometheus(): Promise<string>
  /** Answers a scrape, wherever Fetch API handlers are mounted. */
  handler(request?: Request): Promise<Response>
  /** The same as data, whether there is a sample yet or not. */
  collect(): Promise<readonly MetricFamily[]>
  /** Listens no more. */
  stop(): void
}

/**
 * Counts what happens in this process, by listening to its events; everything over all clients together.
 * Make one for a process.
 *
 * @example
 * const metrics = createMetrics({ observer: hf.observe })
 * app.get('/metrics', (c) => metrics.handler(c.req.raw))
 * @throws OPTION_INVALID
 */
export function createMetrics(given: MetricsOptions = {}): Metrics {
  const options = optionsGiven(given, metricsOptions)
  const { observer, lockLabel = ({ namespace }) => namespace, mostValues = 100 } = options
  if (!Number.isSafeInteger(mostValues) || mostValues < 1) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'mostValues', subject: 'mostValues must be a whole number from 1' },
    })
  }
  const counts = new EventCounts({ lockLabel, mostValues })
  const gauges = new ServerGauges(observer, mostValues)
  const collect = async (): Promise<readonly MetricFamily[]> => {
    await gauges.look()
    return [...counts.set.families(), ...gauges.families()]
  }
  const metrics: Metrics = {
    collect,
    prometheus: async () => prometheusText(await collect()),
    async handler(request) {
      if (request !== undefined && request.method !== 'GET' && request.method !== 'HEAD') {
        return new Response(null, { status: 405, headers: { allow: 'GET, HEAD' } })
      }
      const text = await metrics.prometheus()
      const headers = { 'content-type': prometheusType, 'cache-control': 'no-store' }
      return new Response(request?.method === 'HEAD' ? null : text, { headers })
    },
    stop: () => counts.stop(),
    [Symbol.dispose]: () => counts.stop(),
  }
  return metrics
}
