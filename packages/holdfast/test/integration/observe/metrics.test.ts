/** Metrics from events: exact, readable by Prometheus, and never as many as there are users. */
import { waitUntil } from '@holdfast/testkit'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { EventMap } from '../../../src/core/events/event-map.ts'
import { channels } from '../../../src/core/events.ts'
import { lockKey } from '../../../src/index.ts'
import { EventCounts } from '../../../src/observe/metrics/event-counts.ts'
import {
  createMetrics,
  type Metrics,
  type MetricsOptions,
} from '../../../src/observe/metrics/metrics.ts'
import { prometheusText } from '../../../src/observe/metrics/prometheus.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { type ParsedFamily, parsePrometheus } from '../../support/parse-prometheus.ts'
import { callerTransaction, eventsOn, heardChannels } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture('CREATE TABLE item (id int PRIMARY KEY); INSERT INTO item VALUES (1)')
const made = new Set<Metrics>()
afterEach(() => {
  for (const metrics of made) metrics.stop()
  made.clear()
})

function metricsOf(options?: MetricsOptions): Metrics {
  const metrics = createMetrics(options)
  made.add(metrics)
  return metrics
}

/** The value of one series, by its name and labels. */
function valueOf(
  families: ReadonlyMap<string, ParsedFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const family = families.get(name.replace(/_(?:count|sum|bucket)$/, '')) ?? families.get(name)
  return family?.samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value
}

const read = async (metrics: Metrics): Promise<ReadonlyMap<string, ParsedFamily>> =>
  parsePrometheus(await metrics.prometheus())

test('locks are counted exactly, each outcome once', async () => {
  const metrics = metricsOf()
  const lock = fresh()
  const key = lockKey(lock, 'user-7')
  for (let at = 0; at < 5; at += 1) await fixture.hf.guard(key, async () => undefined)
  const holder = await callerTransaction(fixture)
  await fixture.hf.locks.acquire(holder, [key, lockKey(lock, 'user-8')])
  await expect(fixture.hf.guard(key, async () => undefined, { waitMs: 30 })).rejects.toThrow('TIME')
  await expect(fixture.hf.guard(key, async () => undefined, { waitMs: 0 })).rejects.toThrow('BUSY')
  const stale = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
  await expect(fixture.hf.locks.acquire(stale, key)).rejects.toThrow('STALE')
  const text = await read(metrics)
  const outcome = (name: string): number | undefined =>
    valueOf(text, 'holdfast_lock_acquisitions_total', { lock, outcome: name })
  // Two keys at once are two locks.
  expect(['acquired', 'timeout', 'busy', 'failed'].map(outcome)).toEqual([7, 1, 1, 1])
  expect(valueOf(text, 'holdfast_lock_wait_seconds_count', { lock })).toBe(8)
  expect(valueOf(text, 'holdfast_lock_wait_seconds_sum', { lock })).toBeGreaterThanOrEqual(0.03)
  expect(valueOf(text, 'holdfast_lock_hold_seconds_count', { lock })).toBe(5)
  expect(valueOf(text, 'holdfast_errors_total', { code: 'LOCK_TIMEOUT' })).toBe(1)
  const transactions = { room: 'guard', outcome: 'committed' }
  expect(valueOf(text, 'holdfast_transactions_total', transactions)).toBe(5)
})

test('operations of a batch are counted one by one, and so are their times', async () => {
  const metrics = metricsOf()
  const quota = fixture.hf.quota({ name: fresh(), limit: 50, per: 'day' })
  const key = fresh()
  await Promise.all(
    Array.from({ length: 60 }, () => quota.consume(key, 1, { operationId: fresh() })),
  )
  const text = await read(metrics)
  const about = { book: quota.name, kind: 'debit' }
  const operations = 'holdfast_ledger_operations_total'
  expect(valueOf(text, operations, { ...about, outcome: 'accepted' })).toBe(50)
  const refused = { ...about, outcome: 'refused', reason: 'insufficient' }
  expect(valueOf(text, operations, refused)).toBe(10)
  const { name: book } = quota
  expect(valueOf(text, 'holdfast_ledger_operation_duration_seconds_count', { book })).toBe(60)
  const statements = valueOf(text, 'holdfast_ledger_statement_duration_seconds_count') ?? 0
  expect(statements).toBeGreaterThan(0)
  expect(statements).toBeLessThan(30)
})

test('every room is counted, and no key of a user is in it', async () => {
  const metrics = metricsOf({ observer: fixture.hf.observe })
  const { hf } = fixture
  const secret = `secret-${fresh()}`
  await hf.guard(lockKey('cart', secret), async () => undefined)
  const quota = hf.quota({ name: 'calls', limit: 1, per: 'day' })
  await quota.consume(secret, 1, { operationId: secret })
  await hf.ledger.audit()
  await hf.once(secret, () => 1)
  await hf.once(secret, () => 1)
  const lease = await hf.leases.acquire(`import:${secret}`)
  await lease.release()
  await hf.leader({ name: 'reconciler' }).run(async () => undefined)
  const work = hf.work({ queue: 'mail' })
  await work.enqueue({ payload: secret, uniqueKey: secret })
  const worker = await work.run({ handler: async () => undefined })
  await worker.drain()
  const schedule = hf.schedule({
    name: 'nightly',
    every: '7 days',
    guarantee: 'at-least-once',
    handler: () => undefined,
  })
  await schedule.runNow()
  const tx = await callerTransaction(fixture)
  await hf.rows.lock(tx, 'item', [1])
  const raw = await metrics.prometheus()
  const text = parsePrometheus(raw)
  expect(raw).not.toContain(secret)
  const seen = {
    rows: valueOf(text, 'holdfast_row_locks_total', { table: 'item', outcome: 'locked' }),
    audit: valueOf(text, 'holdfast_ledger_audit_problems'),
    ran: valueOf(text, 'holdfast_once_total', { outcome: 'ran' }),
    replayed: valueOf(text, 'holdfast_once_total', { outcome: 'replayed' }),
    lease: valueOf(text, 'holdfast_lease_events_total', { lease: 'import', event: 'acquired' }),
    leads: valueOf(text, 'holdfast_leader', { name: 'reconciler' }),
    claimed: valueOf(text, 'holdfast_claims_claimed_total', { table: 'work' }),
    completed: valueOf(text, 'holdfast_claims_finished_total', { verb: 'complete' }),
    handled: valueOf(text, 'holdfast_claims_handler_duration_seconds_count', { outcome: 'done' }),
    ticks: valueOf(text, 'holdfast_schedule_ticks_total', { schedule: 'nightly', outcome: 'done' }),
    up: valueOf(text, 'holdfast_server_up'),
  }
  expect(seen).toEqual({
    rows: 1,
    audit: 0,
    ran: 1,
    replayed: 1,
    lease: 1,
    leads: 0,
    claimed: 1,
    completed: 1,
    handled: 1,
    ticks: 1,
    up: 1,
  })
})

describe('labels', () => {
  const awkward = 'a "b"\\c\nd{e}=,#'

  test('may contain anything', async () => {
    const metrics = metricsOf()
    await fixture.hf.guard(lockKey(awkward, 1), async () => undefined)
    const text = await read(metrics)
    const about = { lock: awkward, outcome: 'acquired' }
    expect(valueOf(text, 'holdfast_lock_acquisitions_total', about)).toBe(1)
  })

  test('control: the reader refuses what is not escaped', () => {
    const family = {
      name: 'a_total',
      type: 'counter',
      help: 'a',
      labels: ['lock'],
      samples: () => [{ labels: [awkward], value: 1 }],
    } as const
    const text = prometheusText([family])
    expect(parsePrometheus(text).get('a_total')?.samples[0]?.labels['lock']).toBe(awkward)
    for (const [escaped, bare] of [
      ['\\"', '"'],
      ['\\n', '\n'],
      ['\\\\', '\\'],
    ] as const) {
      expect(() => parsePrometheus(text.replace(escaped, bare))).toThrow(/label|value|name|line/)
    }
  })

  test('can be a template of the key', async () => {
    const metrics = metricsOf({ lockLabel: ({ namespace }) => `${namespace}:{user}` })
    await fixture.hf.guard(lockKey('credits', fresh()), async () => undefined)
    const text = await read(metrics)
    const about = { lock: 'credits:{user}', outcome: 'acquired' }
    expect(valueOf(text, 'holdfast_lock_acquisitions_total', about)).toBe(1)
  })

  test('have a bounded number of values, whatever users make up', () => {
    expect(locksAfter(100, 5_000)).toEqual({ values: 101, counted: 5_000 })
  })

  test('control: without a bound there are as many as keys', () => {
    expect(locksAfter(Number.MAX_SAFE_INTEGER, 5_000)).toEqual({ values: 5_000, counted: 5_000 })
  })

  /** Series of one metric after so many namespaces. */
  function locksAfter(mostValues: number, namespaces: number): { values: number; counted: number } {
    const counts = new EventCounts({ lockLabel: ({ namespace }) => namespace, mostValues })
    onTestFinished(() => counts.stop())
    for (let at = 0; at < namespaces; at += 1) {
      const locks = [{ key: lockKey(`n${at}`, 1), mode: 'exclusive' as const }]
      channels.lockAcquired.publish({ names: [], pid: 1, locks, granted: [], waitMs: 1 })
    }
    const samples = counts.set.lockWait.samples()
    return {
      values: samples.length,
      counted: samples.reduce((sum, { value }) => sum + value, 0),
    }
  }
})

test('what is rare is there as zero before it happens, so that its first time is an increase', async () => {
  const metrics = metricsOf()
  const lock = fresh()
  await fixture.hf.guard(lockKey(lock, 1), async () => undefined)
  const lease = await fixture.hf.leases.acquire('import')
  await lease.release()
  const work = fixture.hf.work({ queue: fresh() })
  await work.claim(1)
  const text = await read(metrics)
  const rare = [
    valueOf(text, 'holdfast_transactions_total', { room: 'guard', outcome: 'unknown' }),
    valueOf(text, 'holdfast_lock_acquisitions_total', { lock, outcome: 'timeout' }),
    valueOf(text, 'holdfast_lock_held_long_total', { lock, level: 'error' }),
    valueOf(text, 'holdfast_lock_order_faults_total', { lock, fault: 'out-of-order' }),
    valueOf(text, 'holdfast_transaction_retries_total', { reason: '40P01' }),
    valueOf(text, 'holdfast_lease_events_total', { lease: 'import', event: 'lost' }),
    valueOf(text, 'holdfast_claims_dead_total', { table: 'work' }),
    valueOf(text, 'holdfast_claims_lost_total', { table: 'work' }),
    valueOf(text, 'holdfast_observe_trouble_total', { during: 'record' }),
  ]
  expect(rare).toEqual(rare.map(() => 0))
})

describe('the server', () => {
  test('is seen: who waits, for how long, what is overdue', async () => {
    const metrics = metricsOf({ observer: fixture.hf.observe })
    const key = lockKey('cart', fresh())
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const waiting = fixture.hf.guard(key, async () => undefined)
    await waitUntil('it waits', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
         WHERE locktype = 'advisory' AND NOT granted`,
      )
      return rows.length > 0 || undefined
    })
    const quota = fixture.hf.quota({ name: 'tokens', limit: 9, per: 'day' })
    await quota.hold('key', 1, { operationId: fresh(), ttl: 1 })
    const text = await read(metrics)
    expect(valueOf(text, 'holdfast_server_up')).toBe(1)
    expect(valueOf(text, 'holdfast_server_waiting_sessions')).toBe(1)
    expect(valueOf(text, 'holdfast_server_longest_wait_seconds')).toBeGreaterThan(0)
    expect(valueOf(text, 'holdfast_server_oldest_transaction_seconds')).toBeGreaterThan(0)
    expect(valueOf(text, 'holdfast_server_overdue_holds', { book: 'tokens' })).toBe(1)
    expect(valueOf(text, 'holdfast_server_late_schedules')).toBe(0)
    await holder.query('COMMIT')
    await waiting
  })

  test('is looked at once for all who ask at the same time', async () => {
    let looks = 0
    const { observe } = fixture.hf
    const observer = {
      ...observe,
      locks: async () => {
        looks += 1
        return await observe.locks()
      },
    }
    const metrics = metricsOf({ observer })
    await Promise.all(Array.from({ length: 5 }, () => metrics.prometheus()))
    await metrics.prometheus()
    expect(looks).toBe(1)
  })

  test('cannot be reached: the rest is told all the same, and nothing old', async () => {
    const trouble = eventsOn<EventMap['observe.trouble']>('holdfast:observe.trouble')
    const observer = {
      ...fixture.hf.observe,
      locks: () => Promise.reject(new Error('unreachable')),
    }
    const metrics = metricsOf({ observer })
    await fixture.hf.guard(lockKey('cart', 1), async () => undefined)
    const text = await read(metrics)
    expect(valueOf(text, 'holdfast_server_up')).toBe(0)
    expect(text.get('holdfast_server_waiting_sessions')).toBeUndefined()
    expect(text.get('holdfast_lock_wait_seconds')).toBeDefined()
    expect(trouble).toMatchObject([{ during: 'metrics' }])
  })
})

test('a scrape gets text, other methods do not', async () => {
  const metrics = metricsOf()
  const ask = (method: string): Promise<Response> =>
    metrics.handler(new Request('http://localhost/metrics', { method }))
  const answer = await ask('GET')
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  parsePrometheus(await answer.text())
  expect(await (await ask('HEAD')).text()).toBe('')
  expect((await ask('POST')).status).toBe(405)
})

test('stopped, it listens no more', () => {
  const metrics = createMetrics()
  expect(channels.lockAcquired.hasSubscribers).toBe(true)
  metrics.stop()
  expect(heardChannels()).toEqual([])
  expect(() => createMetrics({ mostValues: 0 })).toThrow('OPTION_INVALID')
})
