import { deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { legacyKey, lockKey } from '../../../../src/core/locks/lock-key.ts'
import { sqliteLocks } from '../../../../src/engines/sqlite/locks/taking.ts'
import type { SqliteDriver } from '../../../../src/engines/sqlite/driver.ts'
import { createHoldfast, migrate } from '../../../../src/sqlite.ts'
import { type Locks, locksOver, shared } from '../../../../src/locks/locks.ts'
import { eachSqlite, type SqlitePlace } from '../support/each-sqlite.ts'
import { type Handle, inTransaction, openHandle, value } from '../support/sqlite-clients.ts'

const key = lockKey('cart', 7)
const other = lockKey('cart', 8)

eachSqlite(
  ['CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL)', 'INSERT INTO t VALUES (1, 10)'],
  (place) => {
    const locksOf = (driver: SqliteDriver<Handle> = place.driver()): Locks<Handle> =>
      locksOver(sqliteLocks, driver, { strict: false, watch: false })
    const valueOf = (tx: Handle): number => Number(value(tx, 'SELECT v FROM t WHERE id = 1'))

    type Run = (body: (tx: Handle) => Promise<void>) => Promise<unknown>

    /** Check, let everybody else check too, write. */
    const collide = async (run: Run, times: number): Promise<number> => {
      const one = (): Promise<unknown> =>
        run(async (tx) => {
          const v = valueOf(tx)
          await new Promise(setImmediate)
          tx.prepare('UPDATE t SET v = ? WHERE id = 1').run(v + 1)
        })
      await Promise.all(Array.from({ length: times }, one))
      return valueOf(place.open())
    }

    test('many at once, of one process and one driver or several: no update is lost', async () => {
      const [one, two] = [locksOf(), locksOf()]
      let at = 0
      const run: Run = (body) => (++at % 2 ? one : two).guard(key, body, { wait: '20 s' })
      expect(await collide(run, 40)).toBe(50)
    })

    test('other names exclude each other as well: there is one lock', async () => {
      const locks = locksOf()
      let at = 0
      const run: Run = (body) => locks.guard(lockKey('cart', ++at), body, { wait: '20 s' })
      expect(await collide(run, 20)).toBe(30)
    })

    describe('in a transaction of the caller, other tables are called like ours', () => {
      /** Nobody else can write once the lock is there. */
      const isLocked = (): boolean => {
        const db = place.open()
        db.exec('PRAGMA busy_timeout = 0')
        try {
          db.exec('UPDATE t SET v = v')
          return false
        } catch {
          return true
        }
      }

      test('one of the session, or of an attached file: the lock is that of the file', async () => {
        const driver = place.driver()
        await migrate(driver)
        const attached = `${place.file()}.attached`
        for (const text of [
          'CREATE TEMP TABLE holdfast_lock (name TEXT PRIMARY KEY)',
          `ATTACH '${attached}' AS extra; CREATE TABLE extra.holdfast_lock (name TEXT PRIMARY KEY)`,
        ]) {
          const tx = place.open()
          tx.exec(text)
          tx.exec('BEGIN')
          await locksOf(driver).acquire(tx, key)
          expect(isLocked()).toBe(true)
          tx.exec('ROLLBACK')
          expect(isLocked()).toBe(false)
        }
      })

      test('ours are attached to a connection on another file: refused', async () => {
        const driver = place.driver()
        await migrate(driver)
        const tx = openHandle(place.client, `${place.file()}.other`)
        place.closing(tx)
        tx.exec(`PRAGMA journal_mode = WAL; ATTACH '${place.file()}' AS app`)
        tx.exec('CREATE TABLE holdfast_lock (name TEXT PRIMARY KEY)')
        tx.exec('BEGIN')
        await expect(locksOf(driver).acquire(tx, key)).rejects.toMatchObject({
          code: 'ENGINE_FILE_UNFIT',
        })
        expect(isLocked()).toBe(false)
        tx.exec('ROLLBACK')
      })
    })

    test('control: without the lock updates are lost', async () => {
      const db = place.open()
      const run: Run = async (body) => await body(db)
      expect(await collide(run, 20)).toBe(11)
    })

    /** Somebody of this process holds the key until `release`. */
    const held = async (driver: SqliteDriver<Handle>): Promise<{ release(): Promise<void> }> => {
      const [inside, over] = [deferred(), deferred()]
      const holding = locksOf(driver).guard(key, async () => {
        inside.resolve()
        await over.promise
      })
      await inside.promise
      return {
        release: async () => {
          over.resolve()
          await holding
        },
      }
    }

    test('a wait ends in time, and names who has it, if that is in this process', async () => {
      const driver = place.driver()
      const holder = await held(driver)
      const began = performance.now()
      const blockers = [{ pid: process.pid, name: 'cart:7' }]
      await expect(
        locksOf(driver).guard(other, async () => 'in', { wait: 200 }),
      ).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
        details: { names: ['cart:8'], endedBy: 'wait' },
        blockers,
      })
      expect(performance.now() - began).toBeGreaterThan(190)
      for (const wanted of [key, other])
        expect(await locksOf(driver).tryGuard(wanted, async () => 'in')).toMatchObject({
          ok: false,
          blockers,
        })
      await expect(
        locksOf().guard(other, async () => 'in', { wait: 'nowait' }),
      ).rejects.toMatchObject({ code: 'LOCK_BUSY', blockers })
      await holder.release()
      expect(await locksOf(driver).guard(key, async () => 'in')).toBe('in')
      expect(await locksOf(driver).tryGuard(other, async () => 'in')).toMatchObject({ ok: true })
    })

    test('a deadline and a signal end a wait, and leave no place behind', async () => {
      const driver = place.driver()
      const locks = locksOf(driver)
      const holder = await held(driver)
      await expect(
        locks.guard(other, async () => 'in', { deadline: 100, wait: '10 s' }),
      ).rejects.toMatchObject({ code: expect.stringMatching(/^(?:TX_DEADLINE|LOCK_TIMEOUT)$/) })
      const stop = new AbortController()
      const stopped = locks.guard(other, async () => 'in', { signal: stop.signal, wait: '10 s' })
      const why = new Error('enough')
      setImmediate(() => stop.abort(why))
      await expect(stopped).rejects.toBe(why)
      await holder.release()
      expect(await locks.guard(other, async () => 'in', { wait: 500 })).toBe('in')
    })

    test('guards come in the order in which they were called', async () => {
      const driver = place.driver()
      const holder = await held(driver)
      const order: number[] = []
      const all = Array.from({ length: 8 }, async (_, at) =>
        locksOf(driver).guard(lockKey('each', at), async () => void order.push(at)),
      )
      await holder.release()
      await Promise.all(all)
      expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    })

    test('the self-test passes; shared locks and keys of advisory locks are refused', async () => {
      const locks = locksOf()
      expect(await locks.selfTest()).toBeUndefined()
      await expect(locks.guard(shared(key), async () => 1)).rejects.toMatchObject({
        code: 'ENGINE_NOT_OFFERED',
      })
      await expect(locks.guard(legacyKey.hashtext('a'), async () => 1)).rejects.toMatchObject({
        code: 'LOCK_KEY_INVALID',
      })
    })

    test('in the body of a guard other names are held already', async () => {
      const locks = locksOf()
      await locks.guard(key, async (tx) => {
        await locks.acquire(tx, other)
        await locks.assertHeld(tx, [key, other])
        await expect(locks.assertHeld(tx, lockKey('cart', 9))).rejects.toMatchObject({
          code: 'LOCK_NOT_HELD',
        })
        await expect(locks.guard(other, async () => 1)).rejects.toMatchObject({ code: 'TX_NESTED' })
      })
      const kept = await locks.guard(key, async (tx) => tx)
      await expect(locks.acquire(kept, key)).rejects.toMatchObject({
        code: 'LOCK_OUTSIDE_TRANSACTION',
      })
      await expect(locks.assertHeld(kept, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
    })

    describe('in a transaction of the caller', () => {
      const ready = async (): Promise<readonly [Locks<Handle>, Handle, Handle]> => {
        const driver = place.driver()
        const [tx, second] = [place.open(), place.open()]
        await expect(
          (async () => {
            tx.exec('BEGIN')
            await locksOf(driver).acquire(tx, key)
          })(),
        ).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
        tx.exec('ROLLBACK')
        await Promise.all([migrate(driver), migrate(place.driver())])
        return [locksOf(driver), tx, second]
      }

      test.each(['COMMIT', 'ROLLBACK'])('it is held until %s', async (end) => {
        const [locks, tx, second] = await ready()
        tx.exec('BEGIN')
        await locks.acquire(tx, [key, other])
        await locks.assertHeld(tx, [key, other])
        expect(await locks.tryGuard(lockKey('cart', 9), async () => 'in')).toMatchObject({
          ok: false,
        })
        second.exec('BEGIN')
        expect(await locks.tryAcquire(second, key)).toBe(false)
        await expect(locks.assertHeld(second, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
        tx.exec(end)
        await expect(locks.assertHeld(tx, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
        expect(await locks.tryAcquire(second, key)).toBe(true)
        await locks.assertHeld(second, key)
        second.exec('ROLLBACK')
      })

      test('a wait goes on until the holder is done, and timers go on meanwhile', async () => {
        const [locks, tx, second] = await ready()
        tx.exec('BEGIN IMMEDIATE')
        second.exec('BEGIN')
        second.exec('PRAGMA busy_timeout = 4000')
        let ticks = 0
        const timer = setInterval(() => (ticks += 1), 5)
        await expect(locks.acquire(second, key, { wait: 150 })).rejects.toMatchObject({
          code: 'LOCK_TIMEOUT',
        })
        expect(ticks).toBeGreaterThan(2)
        const waiting = locks.acquire(second, key, { wait: '10 s' })
        tx.exec('UPDATE t SET v = 11')
        tx.exec('COMMIT')
        await waiting
        clearInterval(timer)
        expect(valueOf(second)).toBe(11)
        // As the caller had set it.
        expect(value(second, 'PRAGMA busy_timeout')).toBe(4_000)
        second.exec('COMMIT')
      })

      test('outside of one it is refused', async () => {
        const [locks, tx] = await ready()
        for (const run of ['acquire', 'tryAcquire'] as const)
          await expect(locks[run](tx, key)).rejects.toMatchObject({
            code: 'LOCK_OUTSIDE_TRANSACTION',
          })
      })

      test('what was read before and is changed by now: LOCK_STALE_SNAPSHOT', async () => {
        const [locks, tx] = await ready()
        tx.exec('BEGIN')
        expect(valueOf(tx)).toBe(10)
        await locks.guard(key, async (inner) => void inner.exec('UPDATE t SET v = 11'))
        // That the answer is right: this is what the caller would go by.
        expect(valueOf(tx)).toBe(10)
        await expect(locks.acquire(tx, key)).rejects.toMatchObject({ code: 'LOCK_STALE_SNAPSHOT' })
        expect(inTransaction(tx)).toBe(true)
        tx.exec('ROLLBACK')
        // Read and not changed since does no harm.
        tx.exec('BEGIN')
        expect(valueOf(tx)).toBe(11)
        await locks.acquire(tx, key)
        tx.exec('COMMIT')
      })

      test('after a timeout it goes on, also with keepTransaction', async () => {
        const [locks, tx, second] = await ready()
        second.exec('BEGIN IMMEDIATE')
        tx.exec('BEGIN')
        for (const keepTransaction of [false, true])
          await expect(locks.acquire(tx, key, { wait: 30, keepTransaction })).rejects.toMatchObject(
            { code: 'LOCK_TIMEOUT' },
          )
        second.exec('COMMIT')
        await locks.acquire(tx, key, { keepTransaction: true })
        tx.exec('INSERT INTO t VALUES (2, 0)')
        tx.exec('COMMIT')
        expect(value(second, 'SELECT COUNT(*) FROM t')).toBe(2)
      })
    })

    test('a guard that waits behind many is not behind for ever', async () => {
      expect(await comesIn(place)).toBe(true)
    })
  },
)

/** Two drivers, one of which always has somebody waiting. */
async function comesIn(place: SqlitePlace): Promise<boolean> {
  const hf = createHoldfast(place.driver(), { wait: '30 s' })
  let goOn = true
  const busy = Array.from({ length: 3 }, async () => {
    while (goOn) await hf.guard(key, async () => undefined)
  })
  const outside = place.open()
  outside.exec('PRAGMA busy_timeout = 0')
  // By hand, as another process would ask.
  const came = await waitUntil('somebody else may write', async () => {
    try {
      outside.exec('BEGIN IMMEDIATE')
      return true
    } catch {
      return undefined
    }
  })
  outside.exec('COMMIT')
  goOn = false
  await Promise.all(busy)
  return came
}
