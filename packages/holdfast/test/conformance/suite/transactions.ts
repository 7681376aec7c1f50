import { describe, expect, test } from 'vitest'
import type { Isolation } from '../../../src/core/driver.ts'
import { isHoldfastError } from '../../../src/core/errors.ts'
import { sqlStateOf } from '../../../src/core/sql-state.ts'
import { withCircuit } from '../../../src/drivers/circuit.ts'
import { rejection, type Setting } from './setting.ts'

const levels: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']
const settings = { scopes: [] }
const badStatement = 'SELECT 1 / 0 AS infinity'

/** `driver.transaction` resolves if and only if PostgreSQL committed. */
export function transactions<Tx>(at: Setting<Tx>): void {
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`

  test('what the body wrote is there after it, for everybody, and not before', async () => {
    const { driver, run } = at.harness
    const result = await driver.transaction(async ({ native }) => {
      await run(native, insert('committed'))
      expect(await at.balance('committed')).toBeUndefined()
      return ['the', 'result']
    }, settings)
    expect(result).toEqual(['the', 'result'])
    expect(await at.balance('committed')).toBe(1)
  })

  test('the error of the body comes out as it is, and nothing is saved', async () => {
    const { driver, run } = at.harness
    const own = new Error('mine')
    const error = await rejection(
      driver.transaction(async ({ native }) => {
        await run(native, insert('rolled-back'))
        throw own
      }, settings),
    )
    expect(error).toBe(own)
    expect(await at.balance('rolled-back')).toBeUndefined()
  })

  test.each(levels)('opens at %s', async (isolation) => {
    const { driver, run } = at.harness
    const text = "SELECT current_setting('transaction_isolation') AS level"
    const [row] = await driver.transaction(async ({ native }) => await run(native, text), {
      ...settings,
      isolation,
    })
    expect(row?.['level']).toBe(isolation)
    // The level was that transaction's alone.
    const [next] = await driver.transaction(async ({ native }) => await run(native, text), settings)
    expect(next?.['level']).toBe('read committed')
  })

  describe('a failed statement whose error is swallowed', () => {
    test('is an error, and nothing is saved', async () => {
      const { driver, run } = at.harness
      const error = await rejection(
        driver.transaction(async ({ native }) => {
          await run(native, insert('swallowed'))
          await run(native, badStatement).catch(() => undefined)
        }, settings),
      )
      expect(error.code).toBe('TX_ROLLED_BACK')
      expect(await at.balance('swallowed')).toBeUndefined()
    })

    test('is an error also if nobody waited for it', async () => {
      const { driver, run } = at.harness
      const error = await rejection(
        driver.transaction(async ({ native }) => {
          await run(native, insert('forgotten'))
          void run(native, badStatement).catch(() => undefined)
        }, settings),
      )
      expect(error.code).toBe('TX_UNAWAITED')
      expect(await at.balance('forgotten')).toBeUndefined()
    })

    test('does not hide what the body throws instead', async () => {
      const { driver, run } = at.harness
      const own = new Error('mine')
      const error = await rejection(
        driver.transaction(async ({ native }) => {
          await run(native, badStatement).catch(() => undefined)
          throw own
        }, settings),
      )
      expect(error).toBe(own)
    })

    test('control: what the client alone makes of it', async () => {
      const { own, run, facts } = at.harness
      const outcome = await own(async (tx) => {
        await run(tx, insert('control'))
        await run(tx, badStatement).catch(() => undefined)
      }).then(
        () => 'resolved',
        () => 'rejected',
      )
      expect(outcome).toBe(facts.silentRollback ? 'resolved' : 'rejected')
      expect(await at.balance('control')).toBeUndefined()
    })
  })

  test('a constraint that fails at COMMIT rejects with its SQLSTATE', async () => {
    const { driver, run } = at.harness
    let reached = false
    const error = await rejection(
      driver.transaction(async ({ native }) => {
        await run(native, "INSERT INTO late VALUES ('twice'), ('twice')")
        reached = true
      }, settings),
    )
    expect(reached).toBe(true)
    expect(sqlStateOf(error)).toBe('23505')
  })

  test.each(['08001', '08006', '57P01', '57P03', '25P03', '25P01'])(
    'COMMIT refused with %s is no lost connection: the server has answered',
    async (state) => {
      const { driver, run } = at.harness
      const once = withCircuit(driver, { failures: 1 })
      const error = await rejection(
        once.transaction(async ({ native }) => {
          await run(native, insert(`refused-${state}`))
          await run(native, `INSERT INTO refused VALUES ('${state}')`)
        }, settings),
      )
      expect(isHoldfastError(error)).toBe(false)
      expect(sqlStateOf(error)).toBe(state)
      expect(await at.balance(`refused-${state}`)).toBeUndefined()
      expect(await once.transaction(async () => 'let through', settings)).toBe('let through')
    },
  )

  test('a transaction in the place of the root client cannot open another', async () => {
    const { driverOn, own } = at.harness
    await own(async (tx) => {
      if (driverOn === undefined) return
      const nested = Promise.resolve().then(() =>
        driverOn(tx).transaction(async () => undefined, settings),
      )
      // Or it is no root client at all.
      expect(['TX_NESTED', 'DRIVER_HANDLE_INVALID']).toContain((await rejection(nested)).code)
    })
  })
}
