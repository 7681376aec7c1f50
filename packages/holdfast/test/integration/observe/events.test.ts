/** Every channel of the table in docs/events.md is published on a real server, with those fields. */
import { channel } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { EventMap, EventName } from '../../../src/core/events/event-map.ts'
import { channelPrefix, channels } from '../../../src/core/events.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../../src/index.ts'
import { startRecorder } from '../../../src/observe/locks/recorder.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, eventsOn, heardChannels, pidOf } from '../../support/pg-fixture.ts'
import { named } from '../../support/in-time.ts'

const fixture = ledgerFixture(`
  CREATE TABLE item (id int PRIMARY KEY, version int NOT NULL DEFAULT 1);
  INSERT INTO item (id) VALUES (1), (2);
  CREATE TABLE doomed (id int);
  CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER die AFTER INSERT ON doomed
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`)

/** Everything that was published, by channel. */
const seen = new Map<string, Record<string, unknown>[]>()
const stops: (() => void)[] = []
beforeAll(() => {
  for (const { name } of Object.values(channels)) {
    const listen = (message: unknown): void => {
      const list = seen.get(String(name)) ?? []
      list.push(message as Record<string, unknown>)
      seen.set(String(name), list)
    }
    channel(name).subscribe(listen)
    stops.push(() => channel(name).unsubscribe(listen))
  }
})
afterAll(() => {
  for (const stop of stops) stop()
})

function on<N extends EventName>(name: N): EventMap[N][] {
  return eventsOn<EventMap[N]>(channelPrefix + name)
}

const first = async <T>(events: readonly T[]): Promise<T> =>
  await waitUntil('an event', () => events[0])

describe('locks', () => {
  test('a guard asks for, gets and gives back', async () => {
    const [requested, acquired, released] = [
      on('lock.requested'),
      on('lock.acquired'),
      on('lock.released'),
    ]
    await fixture.hf.guard([lockKey('cart', 7), lockKey('user', 3)], async (tx) => {
      await tx.query('SELECT pg_sleep(0.02)')
    })
    const names = ['cart:7', 'user:3']
    expect(requested).toMatchObject([{ names }])
    expect(acquired).toMatchObject([{ names, pid: expect.any(Number), granted: [{}, {}] }])
    expect(released).toMatchObject([{ names, pid: acquired[0]?.pid }])
    expect(released[0]?.heldMs).toBeGreaterThanOrEqual(20)
    expect(acquired[0]?.locks).toBe(requested[0]?.locks)
    expect(released[0]?.locks).toBe(requested[0]?.locks)
  })

  test('what is only tried, and what somebody cancels, end in one way too', async () => {
    const [requested, busy, failed] = [on('lock.requested'), on('lock.busy'), on('lock.failed')]
    const { hf } = fixture
    const key = lockKey('cart', fresh())
    const [holder, client] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    await hf.locks.acquire(holder, key)
    const began = performance.now()
    expect(await hf.locks.tryAcquire(client, key)).toBe(false)
    expect(busy).toMatchObject([{ names: [key.name] }])
    expect(busy[0]?.waitMs).toBeLessThanOrEqual(performance.now() - began)
    expect(busy[0]?.locks).toBe(requested[1]?.locks)
    const pid = await pidOf(client)
    const waiting = hf.locks.acquire(client, key, { wait: '20 s' }).catch((error: unknown) => error)
    await waitUntilBlocked(fixture.observer, pid)
    await fixture.observer.query('SELECT pg_cancel_backend($1)', [pid])
    expect(await waiting).toMatchObject({ code: '57014' })
    expect(failed).toMatchObject([{ names: [key.name], error: { code: '57014' } }])
  })

  test('every request ends in one way, and the wait is told', async () => {
    const ends = (['acquired', 'timeout', 'busy', 'failed'] as const).map((end) =>
      on(`lock.${end}`),
    )
    const requested = on('lock.requested')
    const key = lockKey('cart', fresh())
    const { hf } = fixture
    const holder = await callerTransaction(fixture)
    await hf.locks.acquire(holder, key)
    const began = performance.now()
    let endedMs = 0
    const waiting = hf
      .guard(key, async () => undefined, { wait: 60 })
      .finally(() => {
        endedMs = performance.now() - began
      })
    await expect(waiting).rejects.toThrow('LOCK_TIMEOUT')
    await expect(hf.guard(key, async () => undefined, { waitMs: 0 })).rejects.toThrow('LOCK_BUSY')
    const other = await callerTransaction(fixture)
    expect(await hf.locks.tryAcquire(other, [key, lockKey('cart', fresh())])).toBe(false)
    const stale = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await expect(hf.locks.acquire(stale, key)).rejects.toThrow('LOCK_STALE_SNAPSHOT')
    expect(requested).toHaveLength(5)
    expect(ends.map(({ length }) => length)).toEqual([1, 1, 2, 1])
    const [timeout] = ends[1] as EventMap['lock.timeout'][]
    // The limit counts from the call, what is told from sending: taking a connection lies in between.
    expect(endedMs).toBeGreaterThanOrEqual(60)
    expect(timeout?.waitMs).toBeGreaterThan(0)
    expect(timeout?.waitMs).toBeLessThanOrEqual(endedMs)
    expect(named(timeout as EventMap['lock.timeout']).blockers).toMatchObject([
      { pid: await pidOf(holder) },
    ])
  })

  test('a guard whose body fails gives back when its transaction is over', async () => {
    const released = on('lock.released')
    const key = lockKey('cart', fresh())
    let told: number | undefined
    const failing = fixture.hf.guard(key, async () => {
      setImmediate(() => (told = released.length))
      throw new Error('the body fails')
    })
    await expect(failing).rejects.toThrow('the body fails')
    // By then the body was over, and ROLLBACK not answered.
    expect([told, released.length]).toEqual([0, 1])
  })

  test('another attempt of a guard is another request', async () => {
    const [requested, released] = [on('lock.requested'), on('lock.released')]
    let runs = 0
    await fixture.hf.guard(lockKey('cart', fresh()), async (tx) => {
      runs += 1
      if (runs === 1) await tx.query(`DO $$ BEGIN RAISE serialization_failure; END $$`)
    })
    expect([requested.length, released.length]).toEqual([2, 2])
  })

  test('held for long, and in the wrong order', async () => {
    const hf = fixture.create({ locks: { strict: false, watch: { heldLongMs: 5 } } })
    const [long, order] = [on('lock.held-long'), on('lock.order')]
    await hf.guard(lockKey('slow', 1), async () => {
      await first(long)
    })
    const keys = [lockKey('cart', 1), lockKey('cart', 2)].toSorted((a, b) =>
      idOf(a) < idOf(b) ? 1 : -1,
    )
    await hf.guard(keys, async () => {})
    const tx = await callerTransaction(fixture)
    for (const key of keys) await hf.locks.acquire(tx, key)
    expect(order).toMatchObject([{ fault: 'out-of-order', cycle: [{ before: 'cart' }, {}] }])
  })
})

function idOf({ lock }: ReturnType<typeof lockKey>): bigint {
  return lock.kind === 'bigint' ? lock.id : 0n
}

describe('transactions', () => {
  test('a body that uses the pool instead of its handle', async () => {
    const used = on('tx.root-client')
    await fixture.hf.transaction(async () => await fixture.pool.query('SELECT 1'))
    expect(used).toMatchObject([{ client: 'pg', thrown: false, error: { code: 'TX_ROOT_CLIENT' } }])
  })

  test('committed after a retry, rolled back, and nobody knows', async () => {
    const { hf } = fixture
    const [committed, retry, rolledBack, unknown] = [
      on('tx.committed'),
      on('tx.retry'),
      on('tx.rolled-back'),
      on('tx.unknown'),
    ]
    await hf.transaction(async (tx, { attempt }) => {
      if (attempt === 1) await tx.query(`DO $$ BEGIN RAISE serialization_failure; END $$`)
    })
    expect(retry).toMatchObject([{ attempt: 1, reason: '40001' }])
    expect(committed).toMatchObject([{ room: 'tx', attempts: 2 }])
    await expect(
      hf.transaction(async (tx) => {
        await tx.query('SELECT 1/0')
      }),
    ).rejects.toThrow('division by zero')
    await expect(hf.transaction(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    expect(rolledBack).toMatchObject([{ reason: '22012' }, { reason: 'error' }])
    await expect(
      hf.transaction(async (tx) => {
        await tx.query('INSERT INTO doomed VALUES (1)')
      }),
    ).rejects.toThrow('COMMIT_UNKNOWN')
    expect(unknown).toMatchObject([{ reason: 'COMMIT_UNKNOWN', attempts: 1 }])
    expect([committed.length, rolledBack.length]).toEqual([1, 2])
    const { openMs = 0, durationMs = 0 } = committed[0] ?? {}
    expect(openMs).toBeGreaterThan(0)
    expect(durationMs).toBeGreaterThan(openMs)
  })

  test('the room that opened it is named', async () => {
    const committed = on('tx.committed')
    await fixture.hf.guard(lockKey('cart', fresh()), async () => undefined)
    await fixture.hf.once(fresh(), () => 1)
    expect(committed.map(({ room }) => room)).toEqual(['guard', 'once'])
  })
})

test('rows and tables', async () => {
  const { rows } = fixture.hf
  const [locked, table, busy, timeout, conflict] = [
    on('rows.locked'),
    on('rows.table-locked'),
    on('rows.busy'),
    on('rows.timeout'),
    on('rows.conflict'),
  ]
  const [one, other, third] = [
    await callerTransaction(fixture),
    await callerTransaction(fixture),
    await callerTransaction(fixture),
  ]
  await rows.lock(one, 'item', [1, 99])
  await rows.lock(other, 'item', [1, 2], { wait: 'skip' })
  expect(locked).toMatchObject([
    { table: 'item', strength: 'no key update', locked: 1, missing: 1, skipped: 0 },
    { table: 'item', locked: 1, missing: 0, skipped: 1 },
  ])
  await expect(
    rows.lock(third, 'item', [1], { wait: 'nowait', keepTransaction: true }),
  ).rejects.toThrow('ROWS_BUSY')
  await expect(rows.lock(third, 'item', [1], { wait: 50, keepTransaction: true })).rejects.toThrow(
    'ROWS_TIMEOUT',
  )
  named(busy[0] as EventMap['rows.busy'])
  expect(busy).toMatchObject([{ table: 'item', blockers: [{ pid: await pidOf(one) }] }])
  expect(timeout[0]?.waitMs).toBeGreaterThanOrEqual(50)
  await rows.lockTable(third, 'doomed', 'share row exclusive')
  expect(table).toMatchObject([{ table: 'doomed', mode: 'share row exclusive' }])
  await expect(rows.updateVersioned(one, 'item', 1, { version: 7, set: {} })).rejects.toThrow(
    'ROWS_VERSION_CONFLICT',
  )
  expect(conflict).toEqual([{ table: 'item', reason: 'changed' }])
})

describe('ledger', () => {
  test('what is refused before it is sent is no operation', async () => {
    const operations = on('ledger.operation')
    const quota = fixture.hf.quota({ name: fresh(), limit: 9, per: 'lifetime' })
    for (const ask of [
      () => quota.consume('key', 1, { operationId: fresh() }),
      () => quota.setLimit('key', 5, { operationId: fresh() }),
    ]) {
      await expect(fixture.hf.transaction(ask)).rejects.toMatchObject({ code: 'TX_NESTED' })
    }
    expect(operations).toEqual([])
  })

  test('one batch for many operations, one event for each', async () => {
    const [batches, operations] = [on('ledger.batch'), on('ledger.operation')]
    const quota = fixture.hf.quota({ name: `calls-${fresh()}`, limit: 10, per: 'day' })
    const key = fresh()
    await quota.consume(key, 1, { operationId: fresh() })
    batches.length = 0
    operations.length = 0
    const operationId = fresh()
    await Promise.all([
      ...Array.from({ length: 8 }, () => quota.consume(key, 1, { operationId: fresh() })),
      quota.consume(key, 1, { operationId }),
    ])
    await quota.consume(key, 1, { operationId })
    await quota.consume(key, 1, { operationId: fresh() })
    const sum = (outcome: string): number =>
      batches
        .flatMap(({ tallies }) => tallies)
        .filter((tally) => tally.outcome === outcome)
        .reduce((count, tally) => count + tally.count, 0)
    expect([sum('accepted'), sum('replayed'), sum('refused')]).toEqual([9, 1, 1])
    expect(batches.length).toBeLessThan(8)
    expect(operations).toHaveLength(11)
    expect(operations.at(-1)).toMatchObject({
      book: quota.name,
      key,
      kind: 'debit',
      outcome: 'refused',
      reason: 'insufficient',
      joined: false,
    })
    for (const { tallies } of batches) {
      for (const { buckets, count } of tallies) {
        expect(buckets.reduce((all, each) => all + each, 0)).toBe(count)
      }
    }
  })

  test('what joins a transaction says so, and what fails is told', async () => {
    const batches = on('ledger.batch')
    const quota = fixture.hf.quota({ name: `calls-${fresh()}`, limit: 10, per: 'day' })
    const tx = await callerTransaction(fixture)
    await quota.consume(tx, fresh(), 1, { operationId: fresh() })
    expect(batches).toMatchObject([{ joined: true, operations: 1, tallies: [{ count: 1 }] }])
    const lost = fixture.create({ ledger: { schema: 'nowhere' } }).quota({
      name: 'lost',
      limit: 1,
      per: 'day',
    })
    await expect(lost.consume('a', 1, { operationId: fresh() })).rejects.toThrow('SCHEMA_MISSING')
    expect(batches.at(-1)).toMatchObject({
      tallies: [{ outcome: 'failed', reason: '3F000', count: 1 }],
    })
  })

  test('movements that were followed', async () => {
    const followed = on('ledger.followed')
    const quota = fixture.hf.quota({ name: `calls-${fresh()}`, limit: 1, per: 'day' })
    await quota.consume('key', 1, { operationId: fresh() })
    const options = { name: fresh(), book: quota.name, every: 5 }
    const follower = fixture.hf.ledger.startFollower(options, async () => {})
    expect(await first(followed)).toEqual({
      name: options.name,
      movements: 1,
      durationMs: expect.any(Number),
      error: undefined,
    })
    await follower.stop()
  })

  test('sweeps, audits and refusals that are repeated', async () => {
    const [sweeps, audits, denied] = [on('ledger.sweep'), on('ledger.audited'), on('quota.denied')]
    const sweeper = fixture.hf.ledger.startSweeper({ every: 10 })
    await first(sweeps)
    await sweeper.stop()
    await fixture.hf.ledger.audit()
    expect(audits).toMatchObject([{ found: 0, durationMs: expect.any(Number) }])
    const name = `calls-${fresh()}`
    const quota = fixture.hf.quota({ name, limit: 0, per: 'day', denyCache: { forMs: 60_000 } })
    for (let at = 0; at < 2; at += 1) {
      await quota.consume('key', 1, { operationId: fresh(), freshId: true })
    }
    expect(denied).toEqual([{ book: name }])
  })
})

describe('claims', () => {
  const queue = (): ReturnType<typeof fixture.hf.work> =>
    fixture.hf.work({ queue: fresh(), lease: '1 min' })

  test('claimed, finished, lost and recovered', async () => {
    const work = queue()
    const [claimed, finished, lost, recovered] = [
      on('claims.claimed'),
      on('claims.finished'),
      on('claims.lost'),
      on('claims.recovered'),
    ]
    await work.enqueue([{ payload: 1 }, { payload: 2 }, { payload: 3, maxAttempts: 1 }])
    const claims = await work.claim(5)
    expect(claimed).toMatchObject([{ table: 'work', asked: 5, count: 3, joined: false }])
    const [one, two, three] = claims
    if (one === undefined || two === undefined || three === undefined) throw new Error('no claims')
    const tx = await callerTransaction(fixture)
    await work.complete(tx, one)
    await tx.query('COMMIT')
    await work.fail(three)
    expect(finished).toMatchObject([
      { verb: 'complete', kept: 1, lost: 0, dead: 0, joined: true },
      { verb: 'fail', kept: 1, lost: 0, dead: 1, joined: false },
    ])
    await fixture.observer.query(
      `UPDATE holdfast.work SET lease_until = clock_timestamp() - interval '1 s' WHERE id = $1`,
      [two.row.id],
    )
    await work.recover()
    expect(recovered).toEqual([{ table: 'work', freed: 1, dead: 0 }])
    await work.complete(two)
    expect(lost).toEqual([{ table: 'work', count: 1, verb: 'complete' }])
    expect(finished.at(-1)).toMatchObject({ kept: 0, lost: 1 })
  })

  test('a dead job that somebody deletes', async () => {
    const intervened = on('claims.intervened')
    const work = queue()
    await work.enqueue({ payload: 'bad', maxAttempts: 1 })
    const worker = await work.run({
      handler: async () => await Promise.reject(new Error('bad')),
    })
    await worker.drain()
    const { rows } = await work.dead.list()
    await work.dead.delete(rows.map(({ key }) => key))
    expect(intervened).toHaveLength(1)
  })

  test('handlers that end well and badly', async () => {
    const work = queue()
    const [handled, trouble] = [on('claims.handled'), on('claims.trouble')]
    await work.enqueue([{ payload: 'good' }, { payload: 'bad', maxAttempts: 1 }])
    const worker = await work.run({
      handler: async ({ payload }) => {
        if (payload === 'bad') throw new Error('bad')
      },
    })
    await worker.drain()
    expect(handled.map(({ outcome }) => outcome).toSorted()).toEqual(['done', 'failed'])
    expect(trouble).toMatchObject([{ during: 'handler', table: 'work' }])
  })
})

describe('leases', () => {
  test('acquired, renewed, released; busy and too late', async () => {
    const { leases } = fixture.hf
    const [acquired, renewed, released, busy, timeout, lost] = [
      on('lease.acquired'),
      on('lease.renewed'),
      on('lease.released'),
      on('lease.busy'),
      on('lease.timeout'),
      on('lease.lost'),
    ]
    const name = fresh()
    const lease = await leases.acquire(name)
    expect(await leases.tryAcquire(name)).toBeUndefined()
    await expect(leases.acquire(name, { wait: 50 })).rejects.toThrow('LEASE_TIMEOUT')
    await lease.renew()
    await lease.release()
    const { token } = lease
    expect(acquired).toEqual([{ name, token, waitMs: expect.any(Number) }])
    expect(renewed).toMatchObject([{ name, token }])
    expect(released).toMatchObject([{ name, token }])
    expect(busy).toMatchObject([{ name }])
    expect(timeout[0]?.waitMs).toBeGreaterThanOrEqual(50)
    const again = await leases.acquire(name, { renew: false })
    await fixture.observer.query(
      `UPDATE holdfast.lease SET expires_at = clock_timestamp() - interval '1 s' WHERE name = $1`,
      [name],
    )
    expect(await again.renew()).toBe(false)
    expect(lost).toMatchObject([{ name, reason: 'expired' }])
  })

  test('a renewal that does not get through', async () => {
    const failed = on('lease.renewal-failed')
    const pool = new pg.Pool({ connectionString: fixture.database.url })
    const name = fresh()
    const lease = await createHoldfast(fromPg(pool)).leases.acquire(name, { ttl: '3 s' })
    await pool.end()
    expect(await first(failed)).toMatchObject({ name, token: lease.token })
  })

  test('elected, ended and in trouble', async () => {
    const [elected, ended, trouble] = [
      on('leader.elected'),
      on('leader.ended'),
      on('leader.trouble'),
    ]
    const name = fresh()
    await fixture.hf.leader({ name }).run(async () => undefined)
    expect(elected).toMatchObject([{ name }])
    expect(ended).toMatchObject([{ name, token: elected[0]?.token, reason: 'over' }])
    const stop = new AbortController()
    const unreachable = { session: () => Promise.reject(new Error('unreachable')) }
    const standing = fixture.hf
      .leader({ name, session: unreachable })
      .run(async () => undefined, { signal: stop.signal })
    expect(await first(trouble)).toMatchObject({ name, during: 'campaign' })
    stop.abort()
    await standing
  })
})

test('schedules', async () => {
  const [ticks, trouble] = [on('schedule.tick'), on('schedule.trouble')]
  const name = fresh()
  const schedule = fixture.hf.schedule({
    name,
    every: '7 days',
    guarantee: 'at-least-once',
    attempts: 1,
    handler: ({ manual }) => Promise.reject(new Error(`manual: ${manual}`)),
  })
  await schedule.runNow()
  expect(ticks).toMatchObject([{ schedule: name, outcome: 'failed', manual: true, attempt: 1 }])
  expect(ticks[0]?.durationMs).toBeGreaterThan(0)
  const running = fixture
    .create({ schedule: { schema: 'nowhere' } })
    .schedule({ name, every: '7 days', guarantee: 'at-least-once', handler: () => undefined })
    .start()
  onTestFinished(async () => {
    await running.stop()
  })
  expect(await first(trouble)).toMatchObject({ schedule: name, retryInMs: expect.any(Number) })
})

test('once: ran, replayed and refused', async () => {
  const [ran, replayed, refused] = [on('once.ran'), on('once.replayed'), on('once.refused')]
  const key = fresh()
  const payload = 'a'
  for (let at = 0; at < 2; at += 1) await fixture.hf.once(key, () => 1, { payload })
  await fixture.hf.once(key, () => 1, { payload: 'b', scope: key })
  const tx = await callerTransaction(fixture)
  await fixture.hf.once(tx, fresh(), () => 1)
  expect(ran).toMatchObject([{ key, scope: key, joined: false }, { joined: true }])
  expect(replayed).toMatchObject([{ key }])
  expect(refused).toMatchObject([{ key, reason: 'mismatch' }])
})

test('a recorder writes, and is in trouble', async () => {
  const [recorded, trouble] = [on('observe.recorded'), on('observe.trouble')]
  const driver = fromPg(fixture.pool)
  const recorder = await startRecorder(driver, { every: '100 ms' })
  await createHoldfast(driver).guard(lockKey('cart', fresh()), async () => undefined)
  expect(await first(recorded)).toMatchObject({ names: 1, namespaces: 1 })
  Object.assign(driver.alone, { query: () => Promise.reject(new Error('unreachable')) })
  await createHoldfast(driver).guard(lockKey('cart', fresh()), async () => undefined)
  await recorder.stop()
  expect(trouble).toMatchObject([{ during: 'record' }])
})

test('nobody listens: nothing is measured or made', async () => {
  for (const stop of stops.splice(0)) stop()
  expect(heardChannels()).toEqual([])
  // A listener that comes while a lock is waited for is not told of a wait that was not measured.
  const key = lockKey('cart', fresh())
  const holder = await callerTransaction(fixture)
  await fixture.hf.locks.acquire(holder, key)
  const entered = deferred<undefined>()
  const guarded = fixture.hf.guard(key, () => entered.promise)
  await waitUntil('it waits', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
         WHERE locktype = 'advisory' AND NOT granted`,
    )
    return rows.length > 0 || undefined
  })
  const [acquired, released] = [on('lock.acquired'), on('lock.released')]
  await holder.query('COMMIT')
  entered.resolve(undefined)
  await guarded
  expect(acquired).toEqual([])
  expect(released).toHaveLength(1)
})

describe('docs/events.md', () => {
  const rows = readFileSync(new URL('../../../../../docs/events.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `holdfast:'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
  const fieldsOf = (cell: string): string[] =>
    [...cell.replaceAll(/\([^)]*\)/g, '').matchAll(/`(\w+)`/g)].map(([, field]) => field as string)

  test('has a row for each channel', () => {
    expect(rows.map(([, name = '']) => name.slice(1, -1)).toSorted()).toEqual(
      Object.values(channels)
        .map(({ name }) => String(name))
        .toSorted(),
    )
  })

  test.each(rows.map(([, name = '', , fields = '']) => [name.slice(1, -1), fields]))(
    '%s',
    (name, fields) => {
      const published = new Set((seen.get(name) ?? []).flatMap((message) => Object.keys(message)))
      expect([...published].toSorted()).toEqual(fieldsOf(fields).toSorted())
    },
  )
})
