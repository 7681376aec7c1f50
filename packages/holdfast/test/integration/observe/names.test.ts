import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { lockMemoryOf } from '../../../src/core/locks/lock-memory.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { onceLock } from '../../../src/engines/postgres/once/once.ts'
import {
  createHoldfast,
  type Holdfast,
  legacyKey,
  type LockKey,
  lockKey,
  shared,
} from '../../../src/index.ts'
import { noteEntry } from '../../../src/observe/locks/lock-id.ts'
import { createObserver, type ObservedLock, type Observer } from '../../../src/observe/index.ts'
import { installersLock } from '../../../src/schema/installers-lock.ts'
import { optionsFor } from '../../support/claims-fixture.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

/** A lock has its own name, or none: never that of another. */
const fixture = ledgerFixture()

/** Another process as far as names go: nothing that this one remembers is known to it. */
function stranger(): Observer {
  return createObserver(fromPg(fixture.pool))
}

let app: { readonly hf: Holdfast<pg.PoolClient>; note(): Promise<void> }
beforeEach(async () => {
  await fixture.observer.query('DELETE FROM holdfast.lock_name')
  const driver = fromPg(fixture.pool)
  app = {
    hf: createHoldfast(driver, { locks: { strict: false, watch: false } }),
    // What a recorder does every few seconds.
    async note() {
      const entries = [...lockMemoryOf(driver).since()].map(({ key }) => noteEntry(key))
      await fixture.observer.query("SELECT holdfast.note_locks($1, '[]')", [
        JSON.stringify(entries),
      ])
    },
  }
})

/** All advisory locks of this database, as the server counts them, and as they are observed. */
async function everyLock(observer: Observer): Promise<{ count: number; seen: ObservedLock[] }> {
  const { rows } = await fixture.observer.query<{ count: number }>(`
    SELECT count(*)::int AS count FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
  const { sessions } = await observer.locks()
  const seen = sessions.flatMap(({ holds, waitsFor }) => [
    ...holds.filter(({ id }) => id !== undefined),
    ...(waitsFor?.id === undefined ? [] : [waitsFor]),
  ])
  return { count: rows[0]?.count as number, seen }
}

const namesIn = (locks: readonly ObservedLock[]): string[] =>
  [...new Set(locks.map(({ name }) => name))].toSorted()

async function hold(...keys: LockKey[]): Promise<pg.PoolClient> {
  const tx = await callerTransaction(fixture)
  await app.hf.locks.acquire(tx, keys)
  return tx
}

/** A session of somebody who does not know Holdfast; it ends with the test. */
async function foreign(sql: string, application = 'foreign'): Promise<pg.Client> {
  const { directUrl } = fixture.database
  const client = new pg.Client({ connectionString: directUrl, application_name: application })
  await client.connect()
  onTestFinished(async () => await client.end())
  await client.query(sql)
  return client
}

/** Keys whose label alone tells their name. */
const plain: Readonly<Record<string, LockKey>> = {
  'a number': lockKey('cart', 7),
  'colons in a part': lockKey('file', 'a:b', 'c:d:e'),
  'a colon in the namespace': lockKey('shop:cart', 'x'),
  'empty pieces': lockKey('odd', '::', ':'),
  'the look of a count': lockKey('cart', '7 +2'),
  'a legacy number': legacyKey.bigint(-42n),
  'the smallest number': legacyKey.bigint(-(2n ** 63n)),
  'the largest number': legacyKey.bigint(2n ** 63n - 1n),
  'a legacy pair': legacyKey.pair(-1, -2_147_483_648),
  'a legacy text': legacyKey.hashtext('user:7'),
  'a pair with a text': legacyKey.pair(-5, { hashtext: 'user (7)' }),
}

describe('by label alone', () => {
  test.each(Object.entries(plain))('%s', async (_, key) => {
    await hold(key)
    const { count, seen } = await everyLock(stranger())
    expect(count).toBe(1)
    expect(seen).toMatchObject([
      { kind: 'named', name: key.name, namespace: key.namespace, source: 'annotation' },
    ])
  })

  test('a waiter has no label yet: its lock is named by that of the holder', async () => {
    await hold(lockKey('cart', 8))
    const waiting = app.hf.guard(shared(lockKey('cart', 8)), async () => undefined)
    const seen = await waitUntil('it waits', async () => {
      const { sessions } = await stranger().locks()
      return sessions.find(({ waitsFor }) => waitsFor !== undefined)
    })
    expect(seen.label).toBeUndefined()
    expect(seen.waitsFor).toMatchObject({ name: 'cart:8', source: 'annotation', mode: 'ShareLock' })
    waiting.catch(() => undefined)
  })

  test('what it cannot tell has no name, rather than a wrong one', async () => {
    await hold(lockKey('first', 1), lockKey('second', 1))
    const { seen } = await everyLock(stranger())
    expect(seen.filter(({ kind }) => kind === 'named').map(({ name }) => name)).toEqual(['first:1'])
    expect(seen.find(({ kind }) => kind === 'advisory')?.name).toMatch(/\(name not noted\)$/)
  })
})

describe('by the registry', () => {
  const long = 'x'.repeat(60)
  const keys = [
    ...Object.values(plain),
    lockKey('second', 1),
    lockKey('long', long, 'one'),
    lockKey('deep', ...Array.from('abcdefghijklmn')),
    lockKey('größe', 'é'),
    lockKey('emoji', '🔒'),
  ]

  test('every lock of Holdfast has its name, whatever kind of lock it is', async () => {
    await hold(...keys)
    await hold(lockKey('long', long, 'two'))
    const quiet = createHoldfast(fromPg(fixture.pool), { locks: { annotate: false } })
    const unlabelled = await callerTransaction(fixture)
    await quiet.locks.acquire(unlabelled, lockKey('quiet', 1))
    await app.hf.locks.tryAcquire(unlabelled, lockKey('quiet', 1))
    const done = deferred<void>()
    onTestFinished(() => done.resolve())
    const begun = deferred<void>()
    const working = app.hf.once('webhook:9', async () => {
      begun.resolve()
      await done.promise
    })
    await begun.promise
    const waiting = app.hf.once('webhook:9', async () => undefined)
    const scoped = app.hf.once('🔒 key', async () => await done.promise, { scope: 'tenant é🔒' })
    const elected = deferred<void>()
    const stop = new AbortController()
    const sessions = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
    const leading = app.hf.leader({ name: 'nightly', scope: 'eu', session: fromPg(sessions) }).run(
      async () => {
        elected.resolve()
        await done.promise
      },
      { signal: stop.signal },
    )
    const installing = await foreign(
      `BEGIN; SELECT pg_advisory_xact_lock(${installersLock('holdfast')})`,
      'installer',
    )
    await fixture.observer.query(`
      CREATE TABLE IF NOT EXISTS jobs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, state text NOT NULL DEFAULT 'new',
        due timestamptz NOT NULL DEFAULT now(), tries int NOT NULL DEFAULT 0, token uuid, until timestamptz,
        owner text, why text);
      INSERT INTO jobs (tenant) VALUES ('t-1')`)
    const claiming = await callerTransaction(fixture)
    await app.hf
      .claims({ ...optionsFor('jobs'), perKey: { column: 'tenant', limit: 1 } })
      .claim(claiming, 1)
    await elected.promise
    await waitUntil('all are there', async () => {
      const { count } = await everyLock(stranger())
      return count === keys.length + 1 + 1 + 3 + 3 ? true : undefined
    })
    await app.note()

    const { count, seen } = await everyLock(stranger())
    expect(seen).toHaveLength(count)
    expect(seen.filter(({ kind }) => kind !== 'named')).toEqual([])
    expect(namesIn(seen)).toEqual(
      [
        ...keys.map(({ name }) => name),
        `long:${long}:two`,
        'quiet:1',
        'holdfast-once:webhook:9',
        'holdfast-once:tenant é🔒:🔒 key',
        'holdfast-leader:eu:nightly',
        'holdfast.schema:holdfast',
        'holdfast-turn:jobs:t-1',
      ].toSorted(),
    )
    const known = seen.filter(({ source }) => source === 'known')
    expect(known).toHaveLength(6)
    expect(known.every(({ meaning }) => meaning !== undefined)).toBe(true)

    done.resolve()
    await installing.query('ROLLBACK')
    await Promise.all([working, waiting, scoped, leading])
    await sessions.end()
  })

  test('a recorder writes them down: soon everything that is held or waited for has its name', async () => {
    await using recorder = await app.hf.observe.record({ every: '100 ms' })
    expect(recorder).toBeDefined()
    await hold(...keys)
    await hold(lockKey('long', long, 'two'))
    const waiting = app.hf
      .guard([lockKey('never', 'held'), lockKey('long', long, 'two')], async () => undefined)
      .catch(() => undefined)
    const seen = await waitUntil('all have names', async () => {
      const { count, seen: locks } = await everyLock(stranger())
      const named = locks.filter(({ kind }) => kind === 'named')
      return count >= keys.length + 2 && named.length === count ? named : undefined
    })
    expect(namesIn(seen)).toEqual(
      expect.arrayContaining([...keys.map(({ name }) => name), `long:${long}:two`]),
    )
    await waiting
  })

  test('a leader by session and an installer are known without it', async () => {
    const elected = deferred<void>()
    const done = deferred<void>()
    onTestFinished(() => done.resolve())
    const sessions = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
    const leading = app.hf.leader({ name: 'report', session: fromPg(sessions) }).run(async () => {
      elected.resolve()
      await done.promise
    })
    await elected.promise
    const { seen } = await everyLock(stranger())
    expect(seen).toMatchObject([
      { kind: 'named', name: 'holdfast-leader:report:report', source: 'known' },
    ])
    expect(seen[0]?.heldAtMostMs).toBeUndefined()
    done.resolve()
    await leading
    await sessions.end()
  })

  test('labels that are cut off at the same place are told apart', async () => {
    const customer = 'acme-international-holding-company'
    const one = lockKey('invoice', customer, 'north-america', '2026-10', 'a')
    const two = lockKey('invoice', customer, 'north-america', '2026-10', 'b')
    const holders = [await hold(one), await hold(two)]
    const labels = (await stranger().locks()).sessions.map(({ label }) => label)
    // The control: this is all that PostgreSQL keeps of them.
    expect(new Set(labels).size).toBe(1)
    const entries = [noteEntry(one)]
    await fixture.observer.query("SELECT holdfast.note_locks($1, '[]')", [JSON.stringify(entries)])
    const { sessions } = await stranger().locks()
    const [first, second] = await Promise.all(
      holders.map(async (tx) => {
        const pid = await pidOf(tx)
        return sessions.find((session) => session.pid === pid)?.holds[0]?.name
      }),
    )
    expect(first).toBe(one.name)
    expect(second).toMatch(/^advisory -?\d+ \(name not noted\)$/)
  })

  test('keeps ten thousand names, and the latest of them', async () => {
    const entries = (from: number, to: number): string =>
      JSON.stringify(
        Array.from({ length: to - from }, (_, at) => noteEntry(lockKey('many', from + at))),
      )
    const write = async (from: number, to: number): Promise<void> => {
      await fixture.observer.query("SELECT holdfast.note_locks($1, '[]')", [entries(from, to)])
    }
    for (let from = 0; from < 10_000; from += 2_000) await write(from, from + 2_000)
    // An hour passes, in which the first ten are used again.
    await fixture.observer.query(
      "UPDATE holdfast.lock_name SET seen_at = seen_at - interval '1 hour'",
    )
    await write(0, 10)
    await write(10_000, 10_300)
    const { rows } = await fixture.observer.query<{ all: number; used: number; fresh: number }>(`
      SELECT count(*)::int AS all,
        count(*) FILTER (WHERE split_part(name, ':', 2)::int < 10)::int AS used,
        count(*) FILTER (WHERE split_part(name, ':', 2)::int >= 10000)::int AS fresh
      FROM holdfast.lock_names`)
    expect(rows).toEqual([{ all: 10_000, used: 10, fresh: 300 }])

    // Each of them is found while it is held.
    const tx = await callerTransaction(fixture)
    const quiet = createHoldfast(fromPg(fixture.pool), {
      locks: { annotate: false, strict: false },
    })
    const sample = [...Array.from({ length: 10 }, (_, at) => at), 10_000, 10_050, 10_099]
    await quiet.locks.acquire(
      tx,
      sample.map((at) => lockKey('many', at)),
    )
    const { seen } = await everyLock(stranger())
    expect(namesIn(seen)).toEqual(sample.map((at) => `many:${at}`).toSorted())
    expect(seen.every(({ source }) => source === 'registry')).toBe(true)
    const listed = await stranger().names({ namespace: 'many', limit: 310 })
    expect(listed).toHaveLength(310)
    expect(listed.map(({ name }) => name)).toContain('many:10099')
  })
})

describe('locks of others', () => {
  // Any client can call its session so, and whoever may use leases can write such a row.
  test.each([
    ['a label with an escaped NUL', 'x hf:a:\\x00b', 'SELECT pg_advisory_lock(42)'],
    ['one that is hashed', 'x hf:legacy:hashtext(\\x00)', 'SELECT pg_advisory_lock(42)'],
    [
      'one with bytes of no character',
      'x hf:a:\\xff\\xed\\xa0\\x80',
      'SELECT pg_advisory_lock(42)',
    ],
    [
      'a lease without a name',
      'x hf:a:b',
      `SELECT pg_advisory_lock(42), holdfast.acquire_lease('', '', gen_random_uuid(), 60000, 0, NULL, NULL)`,
    ],
  ])('S15: %s blinds nobody', async (_, application, sql) => {
    await foreign(sql, application)
    const { count, seen } = await everyLock(stranger())
    expect(count).toBe(1)
    expect(namesIn(seen)).toEqual([expect.stringMatching(/^advisory 42 \(/)])
  })

  const numbers = ['42', '-1', '0', '2147483648', '-9223372036854775808', '9223372036854775807']

  test.each(numbers)('pg_advisory_lock(%s)', async (number) => {
    const holder = await foreign(`SELECT pg_advisory_lock(${number})`)
    const waiter = await foreign('SELECT 1')
    const waiting = waiter.query(`SELECT pg_advisory_xact_lock_shared(${number})`)
    await waitUntilBlocked(fixture.observer, backendOf(waiter))
    const { seen } = await everyLock(stranger())
    expect(seen).toHaveLength(2)
    expect(namesIn(seen)).toEqual([`advisory ${number} (not ours)`])
    expect(seen.map(({ kind, source }) => `${kind} ${source}`)).toEqual([
      'advisory none',
      'advisory none',
    ])
    expect(seen.map(({ heldAtMostMs }) => heldAtMostMs)).toEqual([undefined, undefined])
    await holder.query(`SELECT pg_advisory_unlock(${number})`)
    await waiting
  })

  test('a pair is another lock than the number with the same bits', async () => {
    const number = (1n << 32n) | 2n
    const ours = legacyKey.bigint(number)
    await hold(ours)
    const pair = await foreign('BEGIN; SELECT pg_advisory_xact_lock(1, 2)')
    const waiter = await foreign('SELECT 1')
    const waiting = waiter.query('SELECT pg_advisory_xact_lock(1, 2)')
    await waitUntilBlocked(fixture.observer, backendOf(waiter))
    const { seen } = await everyLock(stranger())
    expect(namesIn(seen)).toEqual(['advisory 1,2 (not ours)', ours.name].toSorted())
    await pair.query('ROLLBACK')
    await waiting
  })

  test('a label that lies names nothing', async () => {
    await foreign('SELECT pg_advisory_lock(4242)', 'liar hf:cart:7')
    const waiter = await foreign('SELECT 1')
    const waiting = waiter.query('SELECT pg_advisory_lock(4242)')
    waiting.catch(() => undefined)
    await waitUntilBlocked(fixture.observer, backendOf(waiter))
    const { seen } = await everyLock(stranger())
    expect(seen.some(({ kind }) => kind === 'named')).toBe(false)
    expect(seen.every(({ name }) => name.startsWith('advisory 4242'))).toBe(true)
  })

  test('a lock of another database with the same number is not shown', async () => {
    await app.note()
    const key = lockKey('cart', 7)
    const elsewhere = new pg.Client({
      connectionString: fixture.database.directUrl.replace(/\/[^/?]*(\?|$)/, '/postgres$1'),
      application_name: 'elsewhere hf:cart:7',
    })
    await elsewhere.connect()
    onTestFinished(async () => await elsewhere.end())
    await elsewhere.query(`BEGIN; SELECT pg_advisory_xact_lock(${key.lock.id})`)
    expect((await stranger().locks()).sessions).toEqual([])
    // The control: here it is the lock of that name.
    await hold(key)
    expect((await stranger().locks()).sessions).toHaveLength(1)
  })
})

test('the number of a key of once is worked out as the server does', async () => {
  for (const [key, scope] of [
    ['a', 'a'],
    ['a', 'b'],
    ['webhook:1', 'tenant é🔒'],
    ['🔒', '12'],
  ] as const) {
    const { rows } = await fixture.observer.query<{ id: string }>(
      'SELECT holdfast.once_lock($1, $2)::text AS id',
      [key, scope],
    )
    expect(rows[0]?.id).toBe(String(onceLock({ key, scope })))
  }
})

test('names of this process are listed without any schema', async () => {
  await hold(lockKey('cart', 1), lockKey('cart', 2))
  const listed = await app.hf.observe.names({ namespace: 'cart' })
  expect(listed.map(({ name }) => name).toSorted()).toEqual(['cart:1', 'cart:2'])
  const age = Date.now() - Date.parse(listed[0]?.seenAt ?? '')
  expect(Math.abs(age)).toBeLessThan(60_000)
})

/** Known without asking, also while it waits. */
function backendOf(client: pg.Client): number {
  return (client as unknown as { processID: number }).processID
}
