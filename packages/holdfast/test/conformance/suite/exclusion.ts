import { barrier, deferred, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { pidOf, type Setting, waitingForLock } from './setting.ts'

/** Two transactions made to overlap: with the lock one waits for the other, without it both write. */
export function exclusion<Tx>(at: Setting<Tx>): void {
  const take = (id: string): string => `UPDATE account SET balance = balance - 1 WHERE id = '${id}'`
  const read = async (tx: Tx, id: string): Promise<number> => {
    const [row] = await at.harness.run(tx, `SELECT balance FROM account WHERE id = '${id}'`)
    return Number(row?.['balance'])
  }

  test('guard: the second waits, and sees what the first wrote', async () => {
    const id = await at.account(1)
    const key = lockKey('last-one', id)
    const entered = deferred<number>()
    const mayLeave = deferred()
    const buy = async (wait: () => Promise<void>): Promise<boolean> =>
      await at.locks.guard(key, async (tx) => {
        entered.resolve(await pidOf(at.harness, tx))
        if ((await read(tx, id)) < 1) return false
        await wait()
        await at.harness.run(tx, take(id))
        return true
      })
    const first = buy(async () => await mayLeave.promise)
    const holder = await entered.promise
    const second = buy(async () => undefined)
    expect(await waitUntilBlocked(at.observer, await waitingForLock(at.observer))).toEqual([holder])
    mayLeave.resolve()
    expect(await Promise.all([first, second])).toEqual([true, false])
    expect(await at.balance(id)).toBe(0)
  })

  test('control: without the lock both take the last one', async () => {
    const id = await at.account(1)
    const bothHaveRead = barrier(2)
    const buy = async (): Promise<boolean> =>
      await at.harness.driver.transaction(
        async ({ native }) => {
          if ((await read(native, id)) < 1) return false
          await bothHaveRead()
          await at.harness.run(native, take(id))
          return true
        },
        { scopes: [] },
      )
    expect(await Promise.all([buy(), buy()])).toEqual([true, true])
    expect(await at.balance(id)).toBe(-1)
  })

  test("acquire: held in the caller's transaction until it ends", async () => {
    const key = lockKey('until-the-end', 1)
    const done = deferred()
    const held = deferred()
    const first = at.harness.own(async (tx) => {
      await at.locks.acquire(tx, [key, lockKey('until-the-end', 2)])
      await at.locks.assertHeld(tx, key)
      held.resolve()
      await done.promise
    })
    await held.promise
    await at.harness.own(async (tx) => {
      expect(await at.locks.tryAcquire(tx, key)).toBe(false)
    })
    done.resolve()
    await first
    await at.harness.own(async (tx) => {
      expect(await at.locks.tryAcquire(tx, key)).toBe(true)
    })
  })

  describe('a savepoint', () => {
    const key = lockKey('in-a-savepoint', 1)
    const isFree = async (): Promise<boolean> =>
      await at.harness.own(async (tx) => await at.locks.tryAcquire(tx, key))
    const undone = new Error('undone')
    const ways: Record<string, (tx: Tx, body: (inner: Tx) => Promise<void>) => Promise<void>> = {
      'by nested()': async (tx, body) =>
        await at.harness.driver.join(tx).nested(async ({ native }) => await body(native)),
      "by the client's own call": async (tx, body) => await at.harness.savepoint(tx, body),
    }

    test.each(Object.entries(ways))('%s: undone, it gives the lock back', async (_, savepoint) => {
      await at.harness.own(async (tx) => {
        const undo = savepoint(tx, async (inner) => {
          await at.locks.acquire(inner, key)
          await at.locks.assertHeld(inner, key)
          expect(await isFree()).toBe(false)
          throw undone
        })
        await expect(undo).rejects.toBe(undone)
        await expect(at.locks.assertHeld(tx, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
        expect(await isFree()).toBe(true)
      })
      expect.assertions(4)
    })

    test.each(Object.entries(ways))('%s: kept, it keeps the lock', async (_, savepoint) => {
      await at.harness.own(async (tx) => {
        await savepoint(tx, async (inner) => await at.locks.acquire(inner, key))
        await at.locks.assertHeld(tx, key)
        expect(await isFree()).toBe(false)
      })
      expect.assertions(1)
    })

    test('by nested(): a failed statement in it leaves the transaction usable', async () => {
      const id = await at.account(5)
      await at.harness.own(async (tx) => {
        await at.harness.run(tx, take(id))
        await expect(
          at.harness.driver.join(tx).nested(async (inner) => {
            await at.harness.run(inner.native, take(id))
            await inner.query({ text: 'SELECT 1 / 0 AS infinity', values: [] })
          }),
        ).rejects.toThrow(/division by zero|SELECT 1 \/ 0/)
        await at.harness.run(tx, take(id))
      })
      expect(await at.balance(id)).toBe(3)
    })

    test('by nested(): one in the other, the inner undone', async () => {
      const id = await at.account(5)
      await at.harness.driver.transaction(
        async (transaction) => {
          await transaction.nested(async (outer) => {
            await at.harness.run(outer.native, take(id))
            const inner = outer.nested(async ({ native }) => {
              await at.harness.run(native, take(id))
              throw undone
            })
            await expect(inner).rejects.toBe(undone)
          })
        },
        { scopes: [] },
      )
      expect(await at.balance(id)).toBe(4)
    })
  })
}
