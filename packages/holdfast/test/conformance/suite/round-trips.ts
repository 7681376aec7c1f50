import { expect, onTestFinished, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { createRows, type LockRowsOptions, type Rows } from '../../../src/entries/rows.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { documentedClient, installedVersion } from './documented.ts'
import type { Setting } from './setting.ts'

/** What docs/drivers.md says of a client: its version, and the cost of a lock, counted on the wire. */
export function roundTrips<Tx>(at: Setting<Tx>, name: string, isDocumented: boolean): void {
  const isNewest = process.env['HOLDFAST_MATRIX'] === undefined
  test.runIf(isDocumented && isNewest)('docs/drivers.md names the version that is tested', () => {
    const { driver } = at.harness
    const installed = installedVersion(driver.name === 'prisma' ? '@prisma/client' : driver.name)
    expect(`${installed}.`.startsWith(`${documentedClient(name).version}.`)).toBe(true)
  })

  test('of a guard, and of an acquisition', async () => {
    const wire = await breakableWire(at.url)
    onTestFinished(async () => await wire[Symbol.asyncDispose]())
    const harness = await at.another(wire.url)
    const locks = createLocks(harness.driver, { watch: false })
    const key = lockKey('counted', 1)
    const guard = async (): Promise<void> => await locks.guard(key, async () => undefined)
    const acquire = async (): Promise<number> =>
      await harness.own(async (tx) => {
        await harness.run(tx, 'SELECT 1 AS one')
        const before = wire.roundTrips()
        await locks.acquire(tx, key)
        return wire.roundTrips() - before
      })
    // The first ones prove the server's locks and prepare statements.
    for (let round = 0; round < 3; round += 1) {
      await guard()
      await acquire()
    }
    const before = wire.roundTrips()
    await guard()
    const counted = { guard: wire.roundTrips() - before, acquire: await acquire() }
    expect(counted).toEqual(harness.facts.roundTrips)
    if (isDocumented && isNewest)
      expect(documentedClient(name).roundTrips).toBe(`${counted.guard}, ${counted.acquire}`)
  })
  test('of a row lock: its limit is sent with it where the client can', async () => {
    const wire = await breakableWire(at.url)
    onTestFinished(async () => await wire[Symbol.asyncDispose]())
    const harness = await at.another(wire.url)
    const rows: Rows<unknown> = createRows(harness.driver)
    const id = await at.account(1)
    const counted = async (options: LockRowsOptions): Promise<number> =>
      await harness.own(async (tx) => {
        await harness.run(tx, 'SELECT 1 AS one')
        const before = wire.roundTrips()
        await rows.lock(tx, 'account', [id], options)
        return wire.roundTrips() - before
      })
    // The first ones find out that the connection is direct, and prepare the limit.
    const both = async (): Promise<number[]> => [
      await counted({}),
      await counted({ wait: 'nowait' }),
    ]
    for (let round = 0; round < 3; round += 1) await both()
    const [usual, nowait] = await both()
    expect(nowait).toBe(usual)
    // Drizzle has postgres.js describe every statement anew.
    expect(usual).toBe(
      { pg: harness.facts.roundTrips.acquire, 'Drizzle on postgres-js': 4 }[name] ?? 2,
    )
  })
}
