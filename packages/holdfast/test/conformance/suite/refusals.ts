import { describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { createRows, type Rows } from '../../../src/entries/rows.ts'
import type { Harness } from './harness.ts'
import { rejection, type Setting } from './setting.ts'

type Keep<Tx> = (tx: Tx) => Promise<void>

/** A lock where it would be worthless is refused, never granted in appearance. */
export function refusals<Tx>(at: Setting<Tx>, lookAlikes: readonly string[]): void {
  const takeBare = async (handle: Tx): Promise<void> => {
    await at.harness.run(handle, 'SELECT pg_advisory_xact_lock(4711) IS NOT NULL AS taken')
  }
  const isFree = async (): Promise<boolean> => {
    const { rows } = await at.observer.query<{ free: boolean }>(
      'SELECT pg_try_advisory_xact_lock(4711) AS free',
    )
    return rows[0]?.free === true
  }

  test('the suite knows every look-alike of this client', () => {
    expect(Object.keys(at.harness.lookAlikes)).toEqual(lookAlikes)
  })

  describe.each(lookAlikes)('%s', (name) => {
    const withHandle = async (use: (handle: Tx) => Promise<void>): Promise<void> =>
      await at.harness.lookAlikes[name]?.(use)

    test('is refused', async () => {
      await withHandle(async (handle) => {
        const state = at.harness.driver.join(handle).state()
        expect(['none', at.harness.facts.openState === 'unknown' && 'unknown']).toContain(state)
        const key = lockKey('look-alike', name)
        for (const call of [at.locks.acquire(handle, key), at.locks.tryAcquire(handle, key)]) {
          expect((await rejection(call)).code).toBe('LOCK_OUTSIDE_TRANSACTION')
        }
      })
      expect.assertions(3)
    })

    test('control: a lock taken on it by hand protects nothing', async () => {
      await withHandle(async (handle) => {
        await takeBare(handle)
        expect(await isFree()).toBe(true)
      })
      expect.assertions(1)
    })
  })

  test('control: the same lock in a transaction is held', async () => {
    await at.harness.own(async (tx) => {
      await takeBare(tx)
      expect(await isFree()).toBe(false)
    })
    expect.assertions(1)
  })

  test('an open transaction is recognised, nested ones included', async () => {
    const { driver, own, savepoint, facts } = at.harness
    const key = lockKey('recognised', 1)
    await own(async (tx) => {
      expect(driver.join(tx).state()).toBe(facts.openState)
      await savepoint(tx, async (inner) => {
        expect(driver.join(inner).state()).toBe(facts.openState)
        await at.locks.acquire(inner, key)
      })
      await at.locks.assertHeld(tx, key)
    })
    await driver.transaction(
      async (transaction) => {
        expect(transaction.state()).toBe(facts.ownState ?? 'open')
        await transaction.nested(async (inner) => {
          expect(inner.state()).toBe(facts.ownState ?? 'open')
        })
      },
      { scopes: [] },
    )
    expect.assertions(4)
  })

  test.each([
    ["the caller's", async ({ own }: Harness<Tx>, keep: Keep<Tx>) => await own(keep)],
    [
      'ours',
      async ({ driver }: Harness<Tx>, keep: Keep<Tx>) =>
        await driver.transaction(async ({ native }) => await keep(native), { scopes: [] }),
    ],
  ])('a handle kept after the end of a transaction, %s, takes no lock', async (_, run) => {
    // A client may keep a statement back that it sees for the first time, and with it what follows.
    const harness = await at.another(at.url)
    const locks = createLocks(harness.driver)
    const rows: Rows<unknown> = createRows(harness.driver)
    const key = lockKey('stale', 1)
    await at.observer.query('CREATE TABLE IF NOT EXISTS kept (id int8 PRIMARY KEY)')
    const refused = async (call: (tx: Tx) => Promise<unknown>): Promise<void> => {
      let kept: Tx | undefined
      await run(harness, async (tx) => {
        kept = tx
      })
      expect(await rejection(call(kept as Tx))).toBeDefined()
    }
    await refused((tx) => locks.acquire(tx, key))
    await harness.own(async (tx) => {
      await locks.tryAcquire(tx, key)
      await rows.lock(tx, 'kept', [1])
    })
    await refused((tx) => locks.tryAcquire(tx, key))
    await refused((tx) => locks.assertHeld(tx, key))
    await refused((tx) => rows.lock(tx, 'kept', [1]))
  })

  test.each([null, undefined, 0, '', 'handle', {}, [], () => undefined])(
    'what is no handle at all is refused: %o',
    (handle) => {
      expect(() => at.harness.driver.join(handle as Tx)).toThrow(
        expect.objectContaining({ code: 'DRIVER_HANDLE_INVALID' }),
      )
    },
  )

  test('at REPEATABLE READ', async () => {
    await at.harness.own(async (tx) => {
      const error = await rejection(at.locks.acquire(tx, lockKey('stale-snapshot', 1)))
      expect(error.code).toBe('LOCK_STALE_SNAPSHOT')
    }, 'repeatable read')
    const guard = at.locks.guard(lockKey('stale-snapshot', 1), async () => undefined, {
      isolation: 'repeatable read',
    })
    expect((await rejection(guard)).code).toBe('LOCK_STALE_SNAPSHOT')
    expect.assertions(2)
  })
}
