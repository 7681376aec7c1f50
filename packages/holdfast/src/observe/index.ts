import type { ClaimsOptions } from '../claims/layout.ts'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { keyQueuesOf } from '../core/key-queues.ts'
import { createLockReports } from './lock-reports.ts'
import type { Observer } from './observer.ts'
import { createReports } from './reports.ts'
import { optionsGiven } from '../core/known-options.ts'
import { observerOptions } from './known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

export type { EventMap, EventName } from '../core/event-map.ts'
export type { QueuedKey } from '../core/key-queues.ts'
export { type Branch, lockBranches } from './branches.ts'
export {
  createInterventions,
  type InterventionOptions,
  type Interventions,
  type SessionSeen,
} from './intervene.ts'
export type * from './model.ts'
export type {
  AccountAddress,
  AccountReport,
  BookKeys,
  KeysPage,
  Observer,
  UsageReport,
} from './observer.ts'
export { createMetrics, type Metrics, type MetricsOptions } from './metrics.ts'
export type { MetricFamily, Sample } from './metric-family.ts'
export { on } from './on.ts'
export { instrument, type InstrumentOptions } from './opentelemetry.ts'
export type { OpenTelemetryApi } from './opentelemetry-api.ts'
export { type Recorder, type RecorderOptions, startRecorder } from './recorder.ts'

/** Settings of an observer. */
export interface ObserverOptions {
  /** Where Holdfast's tables are. @defaultValue 'holdfast' */
  readonly schema?: string
  /** Tables of yours that rows are claimed from, as they were given to `hf.claims`. */
  readonly claims?: readonly ClaimsOptions[]
  /** No statement of the observer runs longer. @defaultValue 2_000 */
  readonly statementTimeoutMs?: number
}

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
