import { describe, expect, test } from 'vitest'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { rejection, type Setting } from './setting.ts'

/** Leases, and their fence in the caller's transaction, by the client's own handle. */
export function leases<Tx>(at: Setting<Tx>): void {
  const create = async (): Promise<Holdfast<Tx>> => {
    await migrate(at.harness.driver)
    return createHoldfast(at.harness.driver)
  }
  const expire = async (name: string): Promise<void> => {
    await at.observer.query(
      `UPDATE holdfast.lease SET expires_at = clock_timestamp() - interval '1 ms' WHERE name = $1`,
      [name],
    )
  }

  test('acquired, renewed, read and released; the next token is higher', async () => {
    const hf = await create()
    const name = fresh()
    const lease = await hf.leases.acquire(name, { note: 'it’s "me"' })
    expect(typeof lease.token).toBe('bigint')
    expect(await hf.leases.tryAcquire(name)).toBeUndefined()
    expect(await lease.renew()).toBe(true)
    const reading = await hf.leases.read(name)
    expect(reading).toMatchObject({ state: 'held', token: lease.token, note: 'it’s "me"' })
    expect(reading?.expiresAt).toBeInstanceOf(Date)
    expect(await lease.release()).toBe(true)
    await using next = await hf.leases.tryAcquire(name)
    expect(next?.token).toBeGreaterThan(lease.token)
    expect(await hf.leases.read(fresh())).toBeUndefined()
    expect(await hf.leases.forget({ idleFor: '1 h' })).toBe(0)
  })

  test('a leader, and its guarded write', async () => {
    const hf = await create()
    const account = await at.account(0)
    await hf.leader({ name: fresh() }).run(async (term) => {
      await at.harness.own(async (tx) => {
        await term.guard(tx)
        await at.harness.run(tx, `UPDATE account SET balance = 1 WHERE id = '${account}'`)
      })
    })
    expect(await at.balance(account)).toBe(1)
  })

  describe("in the caller's transaction", () => {
    test('the holder writes; whoever lost it does not', async () => {
      const hf = await create()
      const lease = await hf.leases.acquire(fresh(), { renew: false })
      const account = await at.account(0)
      const write = async (balance: number): Promise<void> =>
        await at.harness.own(async (tx) => {
          await at.harness.run(
            tx,
            `UPDATE account SET balance = ${balance} WHERE id = '${account}'`,
          )
          await lease.guard(tx)
        })
      await write(1)
      await expire(lease.name)
      await using next = await hf.leases.tryAcquire(lease.name)
      expect(next).toBeDefined()
      const error = await rejection(write(2))
      expect(error).toMatchObject({ code: 'LEASE_LOST', details: { reason: 'taken' } })
      expect(await at.balance(account)).toBe(1)
    })

    test('nobody takes it over until that transaction ends', async () => {
      const hf = await create()
      const lease = await hf.leases.acquire(fresh(), { renew: false })
      await at.harness.own(async (tx) => {
        await lease.guard(tx)
        await expire(lease.name)
        expect(
          await createHoldfast(at.harness.driver).leases.tryAcquire(lease.name),
        ).toBeUndefined()
      })
      await using next = await hf.leases.tryAcquire(lease.name)
      expect(next).toBeDefined()
    })

    test('released with it: free when it commits, held if it rolls back', async () => {
      const hf = await create()
      const lease = await hf.leases.acquire(fresh())
      const mine = new Error('mine')
      const undone = at.harness.own(async (tx) => {
        expect(await lease.release(tx)).toBe(true)
        throw mine
      })
      expect(await rejection(undone)).toBe(mine)
      expect(await hf.leases.read(lease.name)).toMatchObject({ state: 'held' })
      await at.harness.own(async (tx) => void (await lease.release(tx)))
      expect(await hf.leases.read(lease.name)).toMatchObject({ state: 'free' })
    })

    test('a handle that was never in one is refused', async () => {
      const hf = await create()
      await using lease = await hf.leases.acquire(fresh())
      for (const withHandle of Object.values(at.harness.lookAlikes)) {
        await withHandle(async (handle) => {
          const error = await rejection(lease.guard(handle))
          expect(error.code).toBe('LEASE_OUTSIDE_TRANSACTION')
        })
      }
    })
  })
}
