import type { KnownOptions } from '../core/known-options.ts'
import type { InterventionOptions } from './intervene.ts'
import type { MetricsOptions } from './metrics.ts'
import type { AccountAddress, KeysPage, Observer } from './observer.ts'
import type { ObserverOptions } from './index.ts'
import type { InstrumentOptions } from './opentelemetry.ts'
import type { RecorderOptions } from './recorder.ts'

type Options<M extends keyof Observer, At extends 0 | 1 = 0> = NonNullable<
  Parameters<Observer[M]>[At]
>

export const observerOptions: KnownOptions<ObserverOptions> = {
  schema: 'text',
  claims: 'list',
  statementTimeoutMs: 'checked',
}

export const recorderOptions: KnownOptions<RecorderOptions & { readonly schema?: string }> = {
  every: 'checked',
  schema: 'text',
}

export const metricsOptions: KnownOptions<MetricsOptions> = {
  observer: 'object',
  lockLabel: 'function',
  mostValues: 'number',
}

export const instrumentOptions: KnownOptions<InstrumentOptions> = {
  ...metricsOptions,
  lockKeys: 'boolean',
  spans: 'boolean',
  metrics: 'boolean',
}

export const interventionOptions: KnownOptions<InterventionOptions> = {
  schema: 'text',
  exceptApplication: 'text',
}

export const accountAddress: KnownOptions<AccountAddress> = {
  book: 'checked',
  key: 'checked',
  scope: 'checked',
}

export const limitOptions: KnownOptions<Options<'holds'>> = {
  limit: 'checked',
}

export const namesOptions: KnownOptions<Options<'names'>> = {
  namespace: 'checked',
  limit: 'checked',
}

export const minutesOptions: KnownOptions<Options<'lockMinutes'>> = {
  namespace: 'checked',
  minutes: 'checked',
}

export const accountOptions: KnownOptions<Options<'account', 1>> = {
  movements: 'checked',
  before: 'checked',
}

export const keysPage: KnownOptions<KeysPage> = {
  after: 'checked',
  limit: 'checked',
}

export const daysOptions: KnownOptions<Options<'usage', 1>> = {
  days: 'checked',
}

export const ticksOptions: KnownOptions<Options<'schedules'>> = {
  ticks: 'checked',
}
