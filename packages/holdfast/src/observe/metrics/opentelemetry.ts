import { isHoldfastError } from '../../core/errors.ts'
import type { LockRequestedEvent } from '../../core/events/event-map.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import {
  type SpanAttributes,
  type SpanName,
  type SpanSubject,
  traceBy,
  type Tracer,
} from '../../core/events/tracing.ts'
import { on } from '../on.ts'
import type { OpenTelemetryApi, OtelSpan } from './opentelemetry-api.ts'
import { openTelemetryMetrics } from './opentelemetry-metrics.ts'
import type { Observer } from '../observer.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'
import { metricsOptions } from './metrics.ts'
import type { LockKey } from '../../core/locks/wanted-lock.ts'

/** Settings of `instrument`. */
export interface InstrumentOptions {
  /** What a lock is called: few values, see `createMetrics`. @defaultValue the namespace */
  readonly lockLabel?: (key: LockKey) => string
  /**
   * Adds the whole names of locks to spans, as `holdfast.lock.keys`. They may contain ids of your users.
   * @defaultValue false
   */
  readonly lockKeys?: boolean
  /** @defaultValue true */
  readonly spans?: boolean
  /** @defaultValue true */
  readonly metrics?: boolean
  /** Gauges of what is seen on the server, whenever metrics are collected. @defaultValue none */
  readonly observer?: Observer
  /** How many values a label has at most; see `createMetrics`. @defaultValue 100 */
  readonly mostValues?: number
}

const instrumentOptions: KnownOptions<InstrumentOptions> = {
  ...metricsOptions,
  lockKeys: 'boolean',
  spans: 'boolean',
  metrics: 'boolean',
}

/** What OpenTelemetry calls the library that made a span. */
const scopeName = 'holdfast'

/**
 * Traces guards, acquisitions, transactions, ledger operations, handlers, ticks and once, and records
 * metrics, through the OpenTelemetry api of the application. What a body does belongs to its span: the
 * queries of an instrumented client are seen below the guard they are protected by. Once for a process;
 * the returned function ends it.
 *
 * @example
 * import * as api from '@opentelemetry/api'
 * instrument(api, { observer: hf.observe })
 */
export function instrument<C>(api: OpenTelemetryApi<C>, given: InstrumentOptions = {}): () => void {
  const options = optionsGiven(given, instrumentOptions)
  const { spans = true, metrics = true } = options
  const stops: (() => void)[] = []
  if (spans) stops.push(...traceWith(api, options))
  if (metrics) stops.push(openTelemetryMetrics(api.metrics.getMeter(scopeName), options))
  return () => {
    for (const stop of stops.splice(0)) stop()
  }
}

function traceWith<C>(
  api: OpenTelemetryApi<C>,
  { lockLabel = ({ namespace }) => namespace, lockKeys = false }: InstrumentOptions,
): readonly (() => void)[] {
  const { context, trace, SpanKind, SpanStatusCode } = api
  const tracer = trace.getTracer(scopeName)
  const failed = (span: OtelSpan, error: unknown): void => {
    span.setAttributes(errorAttributes(error))
    // No message: those of users are theirs, and ours name locks by their keys.
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  const ours: Tracer = {
    async run(name, subject, body) {
      const label =
        subject.locks === undefined ? subject.target : labelsOf(subject.locks, lockLabel)
      const attributes = { ...attributesOf(name, subject, label, lockKeys) }
      const active = context.active()
      // Not CLIENT: that is what the instrumentation of a database client calls its own spans.
      const span = tracer.startSpan(
        label === undefined || label === '' ? `holdfast ${name}` : `holdfast ${name} ${label}`,
        { kind: SpanKind.INTERNAL, attributes },
        active,
      )
      try {
        return await context.with(trace.setSpan(active, span as never), () =>
          body({
            set: (more) => void span.setAttributes({ ...more }),
            fail: (error) => failed(span, error),
          }),
        )
      } catch (error) {
        failed(span, error)
        throw error
      } finally {
        span.end()
      }
    },
  }
  const before = traceBy(ours)
  return [
    () => traceBy(before),
    on('tx.retry', ({ attempt, reason }) => {
      const about = { 'holdfast.attempt': attempt, 'error.type': reason }
      trace.getActiveSpan()?.addEvent('holdfast.retry', about)
    }),
    on('lock.order', ({ fault }) => {
      trace.getActiveSpan()?.addEvent('holdfast.lock.order', { 'holdfast.fault': fault })
    }),
  ]
}

/** Each once, in the order of the keys. */
function labelsOf(locks: LockRequestedEvent['locks'], lockLabel: (key: LockKey) => string): string {
  return [...new Set(locks.map(({ key }) => lockLabel(key)))].join(', ')
}

function attributesOf(
  name: SpanName,
  { locks, attributes }: SpanSubject,
  label: string | undefined,
  lockKeys: boolean,
): SpanAttributes {
  return {
    'db.system.name': 'postgresql',
    'db.operation.name': name,
    ...attributes,
    ...(locks === undefined
      ? {}
      : { 'holdfast.lock.name': label, 'holdfast.lock.count': locks.length }),
    ...(locks === undefined || !lockKeys
      ? {}
      : { 'holdfast.lock.keys': locks.map(({ key }) => key.name).join(', ') }),
  }
}

/** `error.type` has few values: our code, PostgreSQL's, or the class of the error. */
function errorAttributes(error: unknown): Record<string, string | undefined> {
  const sqlState = sqlStateOf(error)
  const type = isHoldfastError(error)
    ? error.code
    : (sqlState ?? (error instanceof Error ? error.name : typeof error))
  return { 'error.type': type, 'db.response.status_code': sqlState }
}
