/** Spans and metrics as the real SDK of OpenTelemetry receives them. */
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest'
import { channels } from '../../../src/core/events.ts'
import { isTraced } from '../../../src/core/events/tracing.ts'
import { lockKey } from '../../../src/index.ts'
import { createMetrics } from '../../../src/observe/metrics/metrics.ts'
import { instrument, type InstrumentOptions } from '../../../src/observe/metrics/opentelemetry.ts'
import { openTelemetryName } from '../../../src/observe/metrics/opentelemetry-metrics.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, heardChannels } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const spans = new InMemorySpanExporter()
const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const meterProvider = new MeterProvider({
  readers: [
    new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 3_600_000 }),
  ],
})
beforeAll(() => {
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  )
  api.metrics.setGlobalMeterProvider(meterProvider)
})
afterAll(async () => {
  api.trace.disable()
  api.metrics.disable()
  api.context.disable()
  await meterProvider.shutdown()
})
beforeEach(() => spans.reset())

let stop: (() => void) | undefined
afterEach(() => {
  stop?.()
  stop = undefined
})

function instrumented(options?: InstrumentOptions): void {
  stop = instrument(api, options)
}

/** Spans that have ended, the first to begin first. */
function ended(): ReadableSpan[] {
  return spans
    .getFinishedSpans()
    .toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
}

const named = (name: string): ReadableSpan => {
  const span = ended().find((each) => each.name === name)
  if (span === undefined)
    throw new Error(
      `no ${name} among ${ended()
        .map((each) => each.name)
        .join()}`,
    )
  return span
}

const parentOf = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId

describe('spans', () => {
  test('a guard is the parent of the queries of its body, and has the lock below it', async () => {
    instrumented()
    const tracer = api.trace.getTracer('the application')
    await tracer.startActiveSpan('request', async (request) => {
      await fixture.hf.guard(
        [lockKey('cart', 7), lockKey('cart', 8), lockKey('user', 3)],
        async (tx) => {
          // What the instrumentation of a client does around its queries.
          await tracer.startActiveSpan('query', async (query) => {
            await tx.query('SELECT 1')
            query.end()
          })
        },
      )
      request.end()
    })
    const guard = named('holdfast guard cart, user')
    expect(ended().map(({ name }) => name)).toEqual([
      'request',
      'holdfast guard cart, user',
      'holdfast lock cart, user',
      'query',
    ])
    expect(parentOf(guard)).toBe(named('request').spanContext().spanId)
    expect(parentOf(named('query'))).toBe(guard.spanContext().spanId)
    expect(parentOf(named('holdfast lock cart, user'))).toBe(guard.spanContext().spanId)
    expect(guard.kind).toBe(api.SpanKind.INTERNAL)
    expect(guard.attributes).toEqual({
      'db.system.name': 'postgresql',
      'db.operation.name': 'guard',
      'holdfast.lock.name': 'cart, user',
      'holdfast.lock.count': 3,
    })
    expect(guard.status.code).toBe(api.SpanStatusCode.UNSET)
  })

  test('what is only tried says whether it was granted', async () => {
    instrumented()
    const key = lockKey('tried', fresh())
    const [one, other] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    expect(await fixture.hf.locks.tryAcquire(one, key)).toBe(true)
    expect(await fixture.hf.locks.tryAcquire(other, key)).toBe(false)
    expect((await fixture.hf.locks.tryGuard(key, async () => 'never')).ok).toBe(false)
    expect(
      ended().map(({ name, attributes }) => [name, attributes['holdfast.lock.granted']]),
    ).toEqual([
      ['holdfast lock tried', true],
      ['holdfast lock tried', false],
      ['holdfast guard tried', undefined],
      ['holdfast lock tried', undefined],
    ])
  })

  test('control: what is not run below the span has another parent', async () => {
    instrumented()
    const outside = api.context.active()
    await fixture.hf.guard(lockKey('cart', 7), async () => {
      api.context.with(outside, () => {
        api.trace.getTracer('the application').startSpan('query').end()
      })
    })
    expect(parentOf(named('query'))).toBeUndefined()
  })

  test('no key of a user is in a trace unless it was asked for', async () => {
    const secret = `secret-${fresh()}`
    const run = async (): Promise<string> => {
      spans.reset()
      const key = lockKey('cart', secret)
      const holder = await callerTransaction(fixture)
      await fixture.hf.locks.acquire(holder, key)
      await expect(fixture.hf.guard(key, async () => undefined, { waitMs: 10 })).rejects.toThrow(
        'LOCK_TIMEOUT',
      )
      await holder.query('ROLLBACK')
      return JSON.stringify(
        ended().map(({ name, attributes, events, status }) => ({
          name,
          attributes,
          events,
          status,
        })),
      )
    }
    instrumented()
    expect(await run()).not.toContain(secret)
    stop?.()
    instrumented({ lockKeys: true, lockLabel: ({ namespace }) => `${namespace}:{user}` })
    const shown = await run()
    expect(shown).toContain(secret)
    expect(named('holdfast guard cart:{user}').attributes['holdfast.lock.keys']).toBe(
      `cart:${secret}`,
    )
  })

  test('what fails is marked with a code, of ours and of PostgreSQL', async () => {
    instrumented()
    const key = lockKey('cart', fresh())
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    await expect(fixture.hf.guard(key, async () => undefined, { waitMs: 10 })).rejects.toThrow(
      'TIME',
    )
    expect(named('holdfast guard cart')).toMatchObject({
      status: { code: api.SpanStatusCode.ERROR },
      attributes: { 'error.type': 'LOCK_TIMEOUT', 'db.response.status_code': '55P03' },
    })
    const failing = fixture.hf.transaction(async (tx) => {
      await tx.query('SELECT 1/0')
    })
    await expect(failing).rejects.toThrow('division by zero')
    expect(named('holdfast transaction tx').attributes).toMatchObject({
      'error.type': '22012',
      'db.response.status_code': '22012',
    })
    await expect(
      fixture.hf.transaction(() => Promise.reject(new TypeError('mine'))),
    ).rejects.toThrow('mine')
    expect(ended().at(-1)?.attributes['error.type']).toBe('TypeError')
    expect(ended().at(-1)?.status.message).toBeUndefined()
  })

  test('another attempt is an event of the span', async () => {
    instrumented()
    await fixture.hf.guard(lockKey('cart', fresh()), async (tx, { attempt }) => {
      if (attempt === 1) await tx.query(`DO $$ BEGIN RAISE serialization_failure; END $$`)
    })
    expect(named('holdfast guard cart').events).toMatchObject([
      { name: 'holdfast.retry', attributes: { 'holdfast.attempt': 1, 'error.type': '40001' } },
    ])
    expect(ended().filter(({ name }) => name === 'holdfast lock cart')).toHaveLength(2)
  })

  test('ledger, once, handlers and ticks', async () => {
    instrumented()
    const { hf } = fixture
    const quota = hf.quota({ name: 'calls', limit: 1, per: 'day' })
    await quota.consume('key', 1, { operationId: fresh() })
    await quota.consume('key', 1, { operationId: fresh() })
    const ledger = ended().filter(({ name }) => name === 'holdfast ledger debit calls')
    expect(ledger.map(({ attributes }) => attributes)).toMatchObject([
      { 'holdfast.book': 'calls', 'holdfast.outcome': 'accepted' },
      { 'holdfast.outcome': 'refused', 'holdfast.reason': 'insufficient' },
    ])
    await hf.once(fresh(), () => 1)
    expect(named('holdfast once').attributes['holdfast.outcome']).toBe('ran')
    expect(parentOf(named('holdfast transaction once'))).toBe(
      named('holdfast once').spanContext().spanId,
    )
    const work = hf.work({ queue: fresh() })
    await work.enqueue({ payload: 1, maxAttempts: 1 })
    const worker = await work.run({
      handler: () => {
        api.trace.getTracer('the application').startSpan('handled').end()
        return Promise.reject(new RangeError('no'))
      },
    })
    await worker.drain()
    expect(named('holdfast claim work').attributes).toMatchObject({
      'db.collection.name': 'work',
      'holdfast.attempt': 1,
      'error.type': 'RangeError',
    })
    expect(parentOf(named('handled'))).toBe(named('holdfast claim work').spanContext().spanId)
    const schedule = hf.schedule({
      name: 'nightly',
      every: '7 days',
      guarantee: 'at-least-once',
      attempts: 1,
      handler: () => Promise.reject(new RangeError('no')),
    })
    await schedule.runNow()
    expect(named('holdfast tick nightly').attributes).toMatchObject({
      'holdfast.schedule': 'nightly',
      'holdfast.outcome': 'failed',
      'error.type': 'RangeError',
    })
  })

  test('ended, nothing is traced any more', async () => {
    instrumented()
    stop?.()
    expect(isTraced()).toBe(false)
    await fixture.hf.guard(lockKey('cart', 7), async () => undefined)
    expect(ended()).toEqual([])
    expect(heardChannels()).toEqual([])
  })
})

describe('metrics', () => {
  interface Point {
    readonly attributes: api.Attributes
    readonly value: number | Histogram
  }

  const collect = async (): Promise<Map<string, { unit: string; points: Point[] }>> => {
    metrics.reset()
    await meterProvider.forceFlush()
    const found = new Map<string, { unit: string; points: Point[] }>()
    for (const { scopeMetrics } of metrics.getMetrics()) {
      for (const { descriptor, dataPoints } of scopeMetrics.flatMap((scope) => scope.metrics)) {
        const { name, unit } = descriptor
        found.set(name, { unit, points: dataPoints as DataPoint<number | Histogram>[] })
      }
    }
    return found
  }

  const valueAt = (
    found: Awaited<ReturnType<typeof collect>>,
    name: string,
    attributes: api.Attributes,
  ): number | Histogram | undefined =>
    found
      .get(name)
      ?.points.find((point) =>
        Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
      )?.value

  test('arrive in seconds, under the names of OpenTelemetry', async () => {
    instrumented({ observer: fixture.hf.observe })
    const lock = fresh()
    for (let at = 0; at < 3; at += 1) {
      await fixture.hf.guard(lockKey(lock, at), async (tx) => {
        await tx.query('SELECT pg_sleep(0.012)')
      })
    }
    const quota = fixture.hf.quota({ name: lock, limit: 10, per: 'day' })
    await quota.consume('key', 1, { operationId: fresh() })
    const found = await collect()
    const about = { 'holdfast.lock.name': lock }
    expect(
      valueAt(found, 'holdfast.lock.acquisitions', { ...about, 'holdfast.outcome': 'acquired' }),
    ).toBe(3)
    const hold = valueAt(found, 'holdfast.lock.hold.duration', about) as Histogram
    expect(hold.count).toBe(3)
    expect(hold.sum).toBeGreaterThanOrEqual(0.036)
    expect(hold.sum).toBeLessThan(3)
    expect(hold.buckets.boundaries).toEqual([
      0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ])
    expect(found.get('holdfast.lock.hold.duration')?.unit).toBe('s')
    expect(valueAt(found, 'holdfast.lock.wait.duration', about)).toMatchObject({ count: 3 })
    expect(valueAt(found, 'holdfast.ledger.operations', { 'holdfast.book': lock })).toBe(1)
    expect(valueAt(found, 'holdfast.server.up', {})).toBe(1)
    expect(
      valueAt(found, 'holdfast.transaction.duration', { 'holdfast.room': 'guard' }),
    ).toBeDefined()
  })

  test('have one name each, and no unit in it', async () => {
    using all = createMetrics()
    const families = await all.collect()
    const names = families.map(({ name }) => openTelemetryName(name))
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).not.toMatch(/_|total|seconds/)
    expect(openTelemetryName('holdfast_lock_wait_seconds')).toBe('holdfast.lock.wait.duration')
  })

  test('ended, nothing is observed any more', async () => {
    instrumented()
    const lock = fresh()
    await fixture.hf.guard(lockKey(lock, 1), async () => undefined)
    stop?.()
    const found = await collect()
    expect(
      valueAt(found, 'holdfast.lock.acquisitions', { 'holdfast.lock.name': lock }),
    ).toBeUndefined()
  })
})

test('either can be left out', async () => {
  stop = instrument(api, { spans: false })
  await fixture.hf.guard(lockKey('cart', 1), async () => undefined)
  expect(ended()).toEqual([])
  stop()
  stop = instrument(api, { metrics: false })
  expect(channels.lockAcquired.hasSubscribers).toBe(false)
  onTestFinished(() => stop?.())
  await fixture.hf.guard(lockKey('cart', 1), async () => undefined)
  expect(ended().length).toBeGreaterThan(0)
})
