import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { keyQueuesOf } from '../core/locks/key-queues.ts'
import { createLockReports } from './locks/lock-reports.ts'
import { type Observer, type ObserverOptions, observerOptions } from './observer.ts'
import { createReports } from './reports.ts'
import { optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

export type { ObserverOptions } from './observer.ts'

export type { EventMap, EventName } from '../core/events/event-map.ts'
export type { QueuedKey } from '../core/locks/key-queues.ts'
export { type Branch, lockBranches } from '../blocking/branches.ts'
export {
  createInterventions,
  type InterventionOptions,
  type Interventions,
} from './intervene.ts'
export type { SessionSeen } from '../blocking/blocking.ts'
export { lockTotals } from './locks/lock-minutes.ts'
export type * from './model.ts'
export type {
  AccountAddress,
  AccountReport,
  BookKeys,
  KeysPage,
  Observer,
  UsageReport,
} from './observer.ts'
export { createMetrics, type Metrics, type MetricsOptions } from './metrics/metrics.ts'
export type { MetricFamily, Sample } from './metrics/metric-family.ts'
export { on } from './on.ts'
export { instrument, type InstrumentOptions } from './metrics/opentelemetry.ts'
export type { OpenTelemetryApi } from './metrics/opentelemetry-api.ts'
export { type Recorder, type RecorderOptions, startRecorder } from './locks/recorder.ts'

/**
 * Looks at a database, and changes nothing. It works without Holdfast's schema, as far as locks go. Where
 * it must also work while the application has used up its connections, give it a pool of its own.
 *
 * @example
 * const observer = createObserver(fromPg(new Pool({ max: 1 })))
 * for (const { session, below } of lockBranches(await observer.locks())) print(session, below)
 * @throws OPTION_INVALID
 */
export function createObserver<Tx>(driver: Driver<Tx>, given: ObserverOptions = {}): Observer {
  assertDriver(driver, 'createObserver')
  const options = optionsGiven(given, observerOptions)
  const { schema = 'holdfast', claims = [], statementTimeoutMs = 2_000 } = options
  if (!Number.isSafeInteger(statementTimeoutMs) || statementTimeoutMs < 1) {
    throw holdfastError('OPTION_INVALID', {
      details: {
        option: 'statementTimeoutMs',
        subject: 'statementTimeoutMs must be a whole number from 1',
      },
    })
  }
  return {
    ...createLockReports({ driver, schema, statementTimeoutMs }),
    queues: () => keyQueuesOf(driver).report(),
    ...createReports(driver, { schema, claims, statementTimeoutMs }),
  }
}
