import { startPostgres, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey, lockNamespace } from '../../../src/index.ts'
import type { GuardOptions } from '../../../src/entries/locks.ts'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()
const key = lockKey('refused', 1)

describe('outside a transaction', () => {
  test('a pool is refused', async () => {
    await expect(fixture.hf.locks.acquire(fixture.pool as never, key)).rejects.toMatchObject({
      code: 'LOCK_OUTSIDE_TRANSACTION',
      name: 'UsageError',
    })
  })

  test('a client without BEGIN is refused, with one it is not', async () => {
    const client = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(client, key)
    await client.query('COMMIT')
    await expect(fixture.hf.locks.acquire(client, key)).rejects.toMatchObject({
      code: 'LOCK_OUTSIDE_TRANSACTION',
    })
    await expect(fixture.hf.locks.tryAcquire(client, key)).rejects.toMatchObject({
      code: 'LOCK_OUTSIDE_TRANSACTION',
    })
  })

  test('a client that cannot tell is found out by the server', async () => {
    const client = await callerTransaction(fixture)
    const mute = new Proxy(client, {
      get: (target, name) => {
        if (name === 'getTransactionStatus') return undefined
        const value = Reflect.get(target, name) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    await fixture.hf.locks.acquire(mute, key)
    await client.query('COMMIT')
    await expect(fixture.hf.locks.acquire(mute, key)).rejects.toMatchObject({
      code: 'LOCK_OUTSIDE_TRANSACTION',
    })
  })

  test('control: PostgreSQL itself says nothing and the lock is worth nothing', async () => {
    const other = await callerTransaction(fixture)
    await fixture.pool.query('SELECT pg_advisory_xact_lock(4711)')
    const { rows } = await other.query('SELECT pg_try_advisory_xact_lock(4711) AS got')
    expect(rows[0].got).toBe(true)
  })

  test('something that is no client at all is refused by name', async () => {
    await expect(fixture.hf.locks.acquire({} as never, key)).rejects.toMatchObject({
      code: 'DRIVER_HANDLE_INVALID',
    })
  })
})

describe.each(['repeatable read', 'serializable'] as const)('at %s', (isolation) => {
  const begin = `BEGIN ISOLATION LEVEL ${isolation}`

  test('a lock is refused without waiting, unless staleness is accepted', async () => {
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const client = await callerTransaction(fixture, begin)
    for (const keys of [key, [key, lockKey('refused', 2)]]) {
      await expect(fixture.hf.locks.acquire(client, keys)).rejects.toMatchObject({
        code: 'LOCK_STALE_SNAPSHOT',
      })
      await expect(fixture.hf.locks.tryAcquire(client, keys)).rejects.toMatchObject({
        code: 'LOCK_STALE_SNAPSHOT',
      })
    }
    await holder.query('COMMIT')
    await fixture.hf.locks.acquire(client, key, { allowStaleSnapshot: true })
    await fixture.hf.locks.assertHeld(client, key)
  })

  test('so is a guard', async () => {
    const guarded = (options: GuardOptions): Promise<string> =>
      fixture.hf.guard(key, async () => 'in', { isolation, ...options })
    await expect(guarded({})).rejects.toMatchObject({ code: 'LOCK_STALE_SNAPSHOT' })
    await expect(guarded({ allowStaleSnapshot: true })).resolves.toBe('in')
  })

  test('control: the check under such a lock reads what was true before the wait', async () => {
    await fixture.observer.query('DROP TABLE IF EXISTS seen; CREATE TABLE seen (n int)')
    const writer = await callerTransaction(fixture)
    const reader = await callerTransaction(fixture, begin)
    await fixture.hf.locks.acquire(writer, key)
    const waiting = fixture.hf.locks.acquire(reader, key, {
      allowStaleSnapshot: true,
      waitMs: 20_000,
    })
    await waitUntil('the reader waits', async () => {
      const { rows } = await fixture.observer.query(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'",
      )
      return rows.length > 0 || undefined
    })
    await writer.query('INSERT INTO seen VALUES (1)')
    await writer.query('COMMIT')
    await waiting
    // The check passes on old data, and at SERIALIZABLE the write commits all the same: the other
    // writer was not SERIALIZABLE.
    expect((await reader.query('SELECT FROM seen')).rows).toHaveLength(0)
    await reader.query('INSERT INTO seen VALUES (2)')
    await reader.query('COMMIT')
    expect((await fixture.observer.query('SELECT FROM seen')).rows).toHaveLength(2)
  })
})

test('read committed is where a lock is worth something', async () => {
  const guarded = fixture.hf.guard(key, async () => 'in', { isolation: 'read committed' })
  await expect(guarded).resolves.toBe('in')
})

describe('keys', () => {
  test('a namespace declared twice is refused; declared once it locks what lockKey locks', async () => {
    const carts = lockNamespace('refusal-carts', 'Changes to one cart')
    expect(() => lockNamespace('refusal-carts', 'again')).toThrow(
      expect.objectContaining({ code: 'LOCK_NAMESPACE_DUPLICATE' }),
    )
    const holder = await callerTransaction(fixture)
    const other = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, carts(7))
    expect(await fixture.hf.locks.tryAcquire(other, lockKey('refusal-carts', 7))).toBe(false)
  })

  test('no key at all is refused', async () => {
    await expect(fixture.hf.guard([], async () => 'in')).rejects.toMatchObject({
      code: 'LOCK_KEY_INVALID',
    })
  })
})

/** These servers are configured or spoilt on purpose, so they are this file's own. */
describe('servers where a lock would be worthless', () => {
  async function on<T>(
    url: string,
    max: number,
    use: (hf: Holdfast<pg.PoolClient>) => Promise<T>,
  ): Promise<T> {
    const pool = new pg.Pool({ connectionString: url, max })
    pool.on('error', () => undefined)
    try {
      return await use(createHoldfast(fromPg(pool)))
    } finally {
      await pool.end()
    }
  }

  test('a streaming standby', async () => {
    await using primary = await startPostgres({ version: 15 })
    await using standby = await primary.standby()
    await on(primary.url(), 2, async (hf) => {
      await hf.locks.selfTest()
      await expect(hf.guard(key, async () => 'in')).resolves.toBe('in')
    })
    await on(standby.url(), 2, async (hf) => {
      await expect(hf.guard(key, async () => 'in')).rejects.toMatchObject({
        code: 'LOCK_ON_STANDBY',
      })
      await expect(hf.guard([key, lockKey('b', 1)], async () => 'in')).rejects.toMatchObject({
        code: 'LOCK_ON_STANDBY',
      })
      await expect(hf.locks.selfTest()).rejects.toMatchObject({ code: 'LOCK_ON_STANDBY' })
    })
  })

  // What old CockroachDB did: the functions exist, return, and lock nothing.
  test.each([
    ['that return nothing', "LANGUAGE sql AS 'SELECT'"],
    ['that return void', "LANGUAGE plpgsql AS 'BEGIN END'"],
  ])('an engine whose advisory locks are stubs %s', async (_, body) => {
    await using server = await startPostgres()
    await on(server.url(), 2, async (hf) => {
      await hf.locks.selfTest()
      await expect(hf.guard(key, async () => 'in')).resolves.toBe('in')
    })
    const admin = new pg.Client({ connectionString: server.url() })
    await admin.connect()
    // Built-in functions are called by their number whatever their definition says; new ones are not.
    await admin.query(`
      ALTER FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) RENAME TO real_lock;
      ALTER FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) RENAME TO real_try_lock;
      CREATE FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) RETURNS void ${body};
      CREATE FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) RETURNS boolean
        LANGUAGE sql AS 'SELECT true'`)
    await admin.end()
    await on(server.url(), 2, async (hf) => {
      await expect(hf.guard(key, async () => 'in')).rejects.toMatchObject({
        code: 'ENGINE_LOCKS_ARE_STUBS',
      })
      await expect(hf.locks.selfTest()).rejects.toMatchObject({ code: 'ENGINE_LOCKS_ARE_STUBS' })
    })
  })

  // What PGlite says of itself; the real one is asked by `npm run check:pglite`.
  test('U7: a server that is a single session', async () => {
    await using server = await startPostgres()
    const admin = new pg.Client({ connectionString: server.url() })
    await admin.connect()
    await admin.query(`
      SET allow_system_table_mods = on;
      ALTER VIEW pg_catalog.pg_stat_activity RENAME TO real_activity;
      CREATE VIEW pg_catalog.pg_stat_activity AS
        SELECT pid, 'standalone backend'::text AS backend_type FROM pg_catalog.real_activity`)
    await admin.end()
    await on(server.url(), 2, async (hf) => {
      await expect(hf.guard(key, () => expect.unreachable())).rejects.toMatchObject({
        code: 'ENGINE_ONE_SESSION',
      })
      await expect(hf.locks.selfTest()).rejects.toMatchObject({ code: 'ENGINE_ONE_SESSION' })
    })
  })

  test('a pool of one cannot run the two-connection self-test, and says so', async () => {
    await on(fixture.database.url, 1, async (hf) => {
      await expect(hf.locks.selfTest()).rejects.toMatchObject({ code: 'SELF_TEST_INCONCLUSIVE' })
      await expect(hf.guard(key, async () => 'in')).resolves.toBe('in')
    })
  })
})
