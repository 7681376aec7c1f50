import { randomUUID } from 'node:crypto'
import { deferred, waitUntil } from '@holdfast/testkit'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { inScope, legacyKey, lockKey } from '../../../../src/core/locks/lock-key.ts'
import { innodbLocks } from '../../../../src/engines/innodb/locks/taking.ts'
import { createLockTable } from '../../../../src/engines/innodb/schema/lock-table.ts'
import { type Locks, locksOver, shared } from '../../../../src/locks/locks.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'
import type { LockKey } from '../../../../src/core/locks/wanted-lock.ts'

const key = lockKey('cart', 7)
const other = lockKey('cart', 8)

eachInnodb((place) => {
  beforeAll(async () => {
    await using session = await place.session()
    await session.rows(createLockTable(undefined).text)
    await session.all('CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB')
  })
  beforeEach(async () => {
    await using session = await place.session()
    await session.all('DELETE FROM t', 'INSERT INTO t VALUES (1, 10)', 'DELETE FROM holdfast_lock')
  })

  const locksOf = ({ driver }: InnodbClient): Locks<Handle> =>
    locksOver(innodbLocks(), driver, { strict: false, watch: false })
  const valueOf = async (pool: InnodbClient, tx: Handle): Promise<number> =>
    Number((await pool.rows(tx, 'SELECT v FROM t WHERE id = 1'))[0]?.['v'])

  type Run = (body: (tx: Handle) => Promise<void>) => Promise<unknown>

  /** Two check, then write: an update is lost unless the second one `waits` for the first before it checks. */
  const collide = async (pool: InnodbClient, run: Run, waits: boolean): Promise<unknown> => {
    const [firstRead, secondCame] = [deferred(), deferred()]
    const first = run(async (tx) => {
      const v = await valueOf(pool, tx)
      firstRead.resolve()
      await secondCame.promise
      await tx.query(`UPDATE t SET v = ${v + 1} WHERE id = 1`)
    })
    await firstRead.promise
    const second = run(async (tx) => {
      const v = await valueOf(pool, tx)
      secondCame.resolve()
      await tx.query(`UPDATE t SET v = ${v + 1} WHERE id = 1`)
    })
    await using session = await place.session()
    if (waits) {
      await somebodyWaits(session)
      secondCame.resolve()
    }
    await Promise.all([first, second])
    return await session.value('SELECT v FROM t WHERE id = 1')
  }

  /** In a transaction of this database, for a row of names. */
  const somebodyWaits = async (session: InnodbSession): Promise<void> => {
    const database = new URL(place.url()).pathname.slice(1)
    const look = async (): Promise<true | undefined> => {
      const here = await session.rows(
        'SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?',
        [database],
      )
      const waiting = await session.waiting()
      return here.some(({ ID }) => waiting.has(Number(ID))) ? true : undefined
    }
    await waitUntil('somebody waits for a lock', look)
  }

  test('of two guards of one key the second reads what the first has written', async () => {
    await using pool = place.pool()
    const locks = locksOf(pool)
    const run: Run = (body) => locks.guard(key, body, { queue: false })
    // The name is new, and then it is known.
    expect(await collide(pool, run, true)).toBe(12)
    expect(await collide(pool, run, true)).toBe(14)
  })

  test('control: without the lock, and with another one, an update is lost', async () => {
    await using pool = place.pool()
    const locks = locksOf(pool)
    const plain: Run = (body) =>
      pool.driver.transaction(async (tx) => await body(tx.native), { scopes: [] })
    expect(await collide(pool, plain, false)).toBe(11)
    let at = 0
    const apart: Run = (body) => locks.guard(lockKey('cart', ++at), body, { queue: false })
    expect(await collide(pool, apart, false)).toBe(12)
  })

  test('many at once, on few names, with bodies that fail: no update is lost', async () => {
    await using pool = place.pool(8)
    const locks = locksOf(pool)
    let committed = 0
    const one = async (at: number): Promise<void> => {
      const keys = [lockKey('hot', at % 3), lockKey('hot', 3 + (at % 2)), key]
      try {
        await locks.guard(
          keys,
          async (tx) => {
            const v = await valueOf(pool, tx)
            await tx.query(`UPDATE t SET v = ${v + 1} WHERE id = 1`)
            if (at % 5 === 0) throw new Error('rolled back')
          },
          { queue: false, wait: '20 s', retry: { attempts: 20, budget: '30 s' } },
        )
        committed += 1
      } catch (error) {
        expect(error).toMatchObject({ message: 'rolled back' })
      }
    }
    await Promise.all(Array.from({ length: 60 }, async (_, at) => await one(at)))
    expect(committed).toBe(48)
    await using session = await place.session()
    expect(await session.value('SELECT v FROM t WHERE id = 1')).toBe(10 + committed)
  })

  /** Somebody else holds the key until `release`. */
  const held = async (
    pool: InnodbClient,
  ): Promise<{ readonly id: number; release(): Promise<void> }> => {
    const inside = deferred<number>()
    const over = deferred()
    const holding = locksOf(pool).guard(
      key,
      async (tx) => {
        const [row] = await pool.rows(tx, 'SELECT CONNECTION_ID() AS id')
        inside.resolve(Number(row?.['id']))
        await over.promise
      },
      { queue: false },
    )
    const id = await inside.promise
    return {
      id,
      release: async () => {
        over.resolve()
        await holding
      },
    }
  }

  test.each(['a new name', 'a known name'])(
    'a wait ends in time, and names who has it: %s',
    async (which) => {
      await using pool = place.pool()
      if (which === 'a known name') await locksOf(pool).guard(key, async () => 'known')
      const holder = await held(pool)
      const began = performance.now()
      const told = locksOf(pool).guard(key, async () => 'in', { wait: 300, queue: false })
      await expect(told).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
        details: { names: ['cart:7'], endedBy: 'wait' },
        blockers: [{ pid: holder.id, name: 'cart:7' }],
      })
      expect(performance.now() - began).toBeGreaterThan(290)
      const tried = locksOf(pool).tryGuard(key, async () => 'in', { queue: false })
      expect(await tried).toMatchObject({ ok: false, blockers: [{ pid: holder.id }] })
      // Another name is free, also if it is new.
      expect(await locksOf(pool).tryGuard(other, async () => 'in')).toMatchObject({ ok: true })
      await holder.release()
      expect(await locksOf(pool).guard(key, async () => 'in')).toBe('in')
      expect(await locksOf(pool).tryGuard(key, async () => 'in')).toMatchObject({ ok: true })
    },
  )

  test('guards of one process queue, and the deadline of one that waits ends it', async () => {
    await using pool = place.pool()
    const locks = locksOf(pool)
    const holder = await held(pool)
    const waiting = locks.guard(key, async () => 'in', { deadline: 300, wait: '10 s' })
    await expect(waiting).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:TX_DEADLINE|LOCK_TIMEOUT)$/),
    })
    await holder.release()
  })

  test('shared locks and keys of advisory locks are refused', async () => {
    await using pool = place.pool()
    const locks = locksOf(pool)
    await expect(locks.guard(shared(key), async () => 1)).rejects.toMatchObject({
      code: 'ENGINE_NOT_OFFERED',
    })
    await expect(locks.guard(legacyKey.hashtext('a'), async () => 1)).rejects.toMatchObject({
      code: 'LOCK_KEY_INVALID',
    })
    // A scope is for several primaries, and does no harm.
    expect(await locks.guard(inScope(key, 'x'), async () => 1)).toBe(1)
  })

  test('the self-test passes', async () => {
    await using pool = place.pool()
    expect(await locksOf(pool).selfTest()).toBeUndefined()
  })

  describe('in a transaction of the caller', () => {
    const begin = async (pool: InnodbClient, level = 'READ COMMITTED'): Promise<Handle> => {
      const tx = await pool.connect()
      await tx.query(`SET TRANSACTION ISOLATION LEVEL ${level}`)
      await tx.beginTransaction()
      return tx
    }

    test.each([1, 3])('%i keys are held until it ends', async (count) => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      const keys = [key, other, lockKey('cart', 9)].slice(0, count)
      for (const end of ['commit', 'rollback'] as const) {
        const tx = await begin(pool)
        await locks.acquire(tx, keys)
        await locks.assertHeld(tx, keys)
        const second = await begin(pool)
        expect(await locks.tryAcquire(second, keys)).toBe(false)
        await expect(locks.assertHeld(second, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
        await tx[end]()
        expect(await locks.tryAcquire(second, keys)).toBe(true)
        await locks.assertHeld(second, keys)
        await second.rollback()
        for (const each of [tx, second]) await each.release()
      }
    })

    test('outside of one it is refused', async () => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      const handle = await pool.connect()
      for (const run of ['acquire', 'tryAcquire'] as const) {
        await expect(locks[run](handle, key)).rejects.toMatchObject({
          code: 'LOCK_OUTSIDE_TRANSACTION',
        })
      }
      await handle.release()
    })

    test('a row that was deleted after the snapshot, and begun anew, hides nobody who has held it since', async () => {
      await using pool = place.pool()
      await using session = await place.session()
      const locks = locksOf(pool)
      for (const keys of [[lockKey('idle', 1)], [lockKey('idle', 1), lockKey('idle', 2)]]) {
        for (const one of keys) await locks.guard(one, async () => await Promise.resolve())
        const tx = await pool.connect()
        await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
        await tx.beginTransaction()
        await tx.query('SELECT v FROM t')
        await session.rows('DELETE FROM holdfast_lock')
        for (const one of keys) await locks.guard(one, async () => await Promise.resolve())
        await expect(locks.acquire(tx, keys)).rejects.toMatchObject({ code: 'LOCK_STALE_SNAPSHOT' })
        await tx.rollback()
        await tx.release()
      }
    })

    test.each([
      ['READ COMMITTED', 'nothing', false],
      ['READ COMMITTED', 'SELECT v FROM t', false],
      ['REPEATABLE READ', 'nothing', false],
      ['REPEATABLE READ', 'SELECT 1', false],
      ['REPEATABLE READ', 'UPDATE t SET v = v + 1 WHERE id = 5', false],
      ['REPEATABLE READ', 'SELECT v FROM t', true],
      ['REPEATABLE READ', 'START TRANSACTION WITH CONSISTENT SNAPSHOT', true],
    ])('at %s, after %s, by a later holder it is stale: %s', async (level, before, isStale) => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      for (const keys of [[key], [key, other], [lockKey('fresh', level, before)]]) {
        const tx = await pool.connect()
        await tx.query(`SET TRANSACTION ISOLATION LEVEL ${level}`)
        const isBegin = before.startsWith('START')
        await (isBegin ? tx.query(before) : tx.beginTransaction())
        if (before !== 'nothing' && !isBegin) await tx.query(before)
        await locks.guard(keys, async (inner) => await inner.query('UPDATE t SET v = v + 1'))
        const told = locks.acquire(tx, keys)
        if (isStale) {
          await expect(told).rejects.toMatchObject({ code: 'LOCK_STALE_SNAPSHOT' })
          // That the check was right: this is what the caller would read.
          if (place.server !== 'mariadb-11') {
            await using session = await place.session()
            const now = await session.value('SELECT v FROM t WHERE id = 1')
            expect(await valueOf(pool, tx)).not.toBe(now)
          }
        } else {
          await told
          await using session = await place.session()
          expect(await valueOf(pool, tx)).toBe(await session.value('SELECT v FROM t WHERE id = 1'))
        }
        await tx.rollback()
        await tx.release()
      }
    })

    test('the first lock of a key makes nobody wait who is after another new one', async () => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      const news = ['m', 'a', 'z'].map((each) => lockKey('new', each, randomUUID()))
      const [mine, ...others] = news as [LockKey, ...LockKey[]]
      const tx = await begin(pool, 'REPEATABLE READ')
      await locks.acquire(tx, mine)
      for (const each of others) {
        const tried = await locks.tryGuard(each, async () => 'in')
        expect(tried).toMatchObject({ ok: true })
      }
      await tx.rollback()
      await tx.release()
    })

    test('an early read that did no harm is not refused', async () => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      await locks.guard(key, async () => 'earlier')
      const tx = await begin(pool, 'REPEATABLE READ')
      await valueOf(pool, tx)
      expect(await locks.acquire(tx, key)).toBeUndefined()
      await tx.rollback()
      await tx.release()
    })

    test('a rolled-back savepoint, DDL and COMMIT release it, and assertHeld says so', async () => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      const isHeld = async (tx: Handle): Promise<boolean> =>
        await locks.assertHeld(tx, key).then(
          () => true,
          () => false,
        )
      const tx = await begin(pool)
      await tx.query('UPDATE t SET v = v + 1 WHERE id = 1')
      await tx.query('SAVEPOINT s')
      await locks.acquire(tx, key)
      expect(await isHeld(tx)).toBe(true)
      await tx.query('ROLLBACK TO SAVEPOINT s')
      expect(await isHeld(tx)).toBe(false)
      await locks.acquire(tx, key)
      await tx.query('CREATE TABLE IF NOT EXISTS t (id INT)')
      expect(await isHeld(tx)).toBe(false)
      await tx.beginTransaction()
      await locks.acquire(tx, key)
      await tx.commit()
      expect(await isHeld(tx)).toBe(false)
      // Somebody else has had it since.
      await locks.guard(key, async () => 'in between')
      await tx.beginTransaction()
      expect(await isHeld(tx)).toBe(false)
      await tx.rollback()
      await tx.release()
    })

    test('after a timeout it goes on', async () => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      const holder = await held(pool)
      const tx = await begin(pool)
      await tx.query('INSERT INTO t VALUES (2, 0)')
      await expect(locks.acquire(tx, key, { wait: 100 })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
        blockers: [{ pid: holder.id }],
      })
      await expect(
        locks.acquire(tx, key, { wait: 100, keepTransaction: true }),
      ).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
      await locks.acquire(tx, other)
      await tx.commit()
      await tx.release()
      await holder.release()
      await using session = await place.session()
      expect(await session.value('SELECT COUNT(*) FROM t')).toBe(2)
    })

    test('settings of the session are as they were', async () => {
      await using pool = place.pool()
      const locks = locksOf(pool)
      const tx = await begin(pool)
      const settings = async (): Promise<unknown> =>
        await pool.rows(tx, "SHOW VARIABLES WHERE Variable_name LIKE '%timeout%'")
      const before = await settings()
      await locks.acquire(tx, lockKey('set', 1), { wait: 300 })
      await locks.tryAcquire(tx, lockKey('set', 2))
      expect(await settings()).toEqual(before)
      await tx.rollback()
      await tx.release()
    })
  })
}, 'the server')
