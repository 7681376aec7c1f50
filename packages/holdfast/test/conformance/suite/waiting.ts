import { describe, expect, test } from 'vitest'
import { legacyKey, lockKey } from '../../../src/core/locks/lock-key.ts'
import type { HoldfastError } from '../../../src/core/errors.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { rejection, type Setting } from './setting.ts'
import { inTime, named } from '../../support/in-time.ts'

const limitMs = 200
/** How much later than the limit the error may come. */
const graceMs = 150

/** Waits end at their limit, say who was in the way, and leave the caller's settings alone. */
export function waiting<Tx>(at: Setting<Tx>): void {
  const key = lockKey('taken', 1)

  /** Somebody else holds the key; gives the pid of that backend. */
  async function takenByRival(): Promise<number> {
    const rival = await at.rival()
    await createLocks(fromPg(at.observer), { watch: false }).acquire(rival, key)
    const { rows } = await rival.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return rows[0]?.pid as number
  }

  async function timed(
    call: () => Promise<unknown>,
  ): Promise<{ error: HoldfastError; tookMs: number }> {
    const began = performance.now()
    const error = (await rejection(call())) as HoldfastError
    return { error, tookMs: performance.now() - began }
  }

  function expectTimeout({ error, tookMs }: Awaited<ReturnType<typeof timed>>, pid: number): void {
    expect(error.code).toBe('LOCK_TIMEOUT')
    expect(named(error).blockers).toMatchObject([
      { pid, name: 'taken:1', state: 'idle in transaction' },
    ])
    expect(tookMs).toBeGreaterThanOrEqual(limitMs)
    inTime(tookMs, limitMs + graceMs)
  }

  /** The first look at blockers should not have to pay for a new connection. */
  async function warmUp(): Promise<void> {
    const settings = { scopes: [] }
    const { driver } = at.harness
    await driver.transaction(async () => {
      await driver.alone.query({ text: 'SELECT true AS warm', values: [] })
    }, settings)
  }

  test('guard: LOCK_TIMEOUT in time, with the blocker', async () => {
    await warmUp()
    const pid = await takenByRival()
    expectTimeout(
      await timed(() =>
        at.locks.guard(key, async () => undefined, { waitMs: limitMs, retry: false }),
      ),
      pid,
    )
    expect.assertions(3)
  })

  test('acquire: LOCK_TIMEOUT in time, with the blocker; the transaction is lost', async () => {
    await warmUp()
    const pid = await takenByRival()
    let seen: Awaited<ReturnType<typeof timed>> | undefined
    const own = at.harness.own(async (tx) => {
      seen = await timed(() => at.locks.acquire(tx, key, { waitMs: limitMs }))
      await at.harness.run(tx, 'SELECT 1 AS one')
    })
    await rejection(own)
    expectTimeout(seen as Awaited<ReturnType<typeof timed>>, pid)
    expect.assertions(3)
  })

  test('keepTransaction: LOCK_TIMEOUT in time, and the transaction goes on', async () => {
    const id = await at.account(1)
    const pid = await takenByRival()
    await at.harness.own(async (tx) => {
      await at.harness.run(tx, `UPDATE account SET balance = 2 WHERE id = '${id}'`)
      const options = { waitMs: limitMs, keepTransaction: true }
      expectTimeout(await timed(() => at.locks.acquire(tx, key, options)), pid)
      await at.locks.acquire(tx, lockKey('free', 1))
      await at.harness.run(tx, `UPDATE account SET balance = balance + 1 WHERE id = '${id}'`)
    })
    expect(await at.balance(id)).toBe(3)
  })

  test('keepTransaction in a guard: the body may go on without the lock', async () => {
    const id = await at.account(1)
    await takenByRival()
    await at.locks.guard(lockKey('free', 2), async (tx) => {
      const options = { waitMs: 50, keepTransaction: true }
      const error = await rejection(at.locks.acquire(tx, key, options))
      expect(error.code).toBe('LOCK_TIMEOUT')
      await at.harness.run(tx, `UPDATE account SET balance = 2 WHERE id = '${id}'`)
    })
    expect(await at.balance(id)).toBe(2)
  })

  test('LOCK_BUSY at once where nobody wants to wait', async () => {
    const pid = await takenByRival()
    await at.harness.own(async (tx) => {
      const { error } = await timed(() => at.locks.acquire(tx, key, { waitMs: 0 }))
      expect(error.code).toBe('LOCK_BUSY')
      expect(named(error).blockers).toMatchObject([{ pid, name: 'taken:1' }])
      await at.harness.run(tx, 'SELECT 1 AS one')
    })
    expect.assertions(2)
  })

  test('LOCK_BUSY at once in a guard that does not wait', async () => {
    const pid = await takenByRival()
    const { error } = await timed(() => at.locks.guard(key, async () => undefined, { waitMs: 0 }))
    expect(error.code).toBe('LOCK_BUSY')
    expect(named(error).blockers).toMatchObject([{ pid, name: 'taken:1' }])
  })

  describe("the caller's lock_timeout", () => {
    const current = async (tx: Tx): Promise<unknown> => {
      const text = "SELECT current_setting('lock_timeout') AS value"
      return (await at.harness.run(tx, text))[0]?.['value']
    }

    test.each(['7s', '0'])('of %s is in force again after a lock', async (value) => {
      await at.harness.own(async (tx) => {
        await at.harness.run(tx, `SET LOCAL lock_timeout = '${value}'`)
        await at.locks.acquire(tx, legacyKey.bigint(1), { waitMs: 900 })
        expect(await current(tx)).toBe(value)
        await at.locks.acquire(tx, [legacyKey.bigint(2), legacyKey.bigint(3)], { waitMs: 900 })
        expect(await current(tx)).toBe(value)
      })
      expect.assertions(2)
    })

    test('is in force again after a timeout that keeps the transaction', async () => {
      await takenByRival()
      await at.harness.own(async (tx) => {
        await at.harness.run(tx, "SET LOCAL lock_timeout = '7s'")
        await rejection(at.locks.acquire(tx, key, { waitMs: 50, keepTransaction: true }))
        expect(await current(tx)).toBe('7s')
      })
      expect.assertions(1)
    })

    test('is the limit where the call inherits it', async () => {
      await takenByRival()
      const own = at.harness.own(async (tx) => {
        await at.harness.run(tx, "SET LOCAL lock_timeout = '50ms'")
        const error = await rejection(at.locks.acquire(tx, key, { waitMs: 'inherit' }))
        expect(error.code).toBe('LOCK_TIMEOUT')
        throw error
      })
      await rejection(own)
      expect.assertions(1)
    })
  })
}
