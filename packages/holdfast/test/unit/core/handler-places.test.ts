import { describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { handlerPlacesOf } from '../../../src/core/handler-places.ts'

const driverOver = (of: object, size: number): Driver<never> =>
  ({ capabilities: { pool: { of, size } } }) as unknown as Driver<never>

describe('R7: places of a pool', () => {
  test('one fewer than connections, the same for every driver over the pool, in order of coming', async () => {
    const pool = {}
    const [places, others] = [driverOver(pool, 3), driverOver(pool, 3)].map(handlerPlacesOf)
    expect([places?.most, others]).toEqual([2, places])
    const first = await places?.take()
    await others?.take()
    const order: number[] = []
    const waiting = [1, 2].map(async (number) => {
      const leave = await places?.take()
      order.push(number)
      return leave
    })
    expect(await places?.take(undefined, 1)).toBeTypeOf('function')
    expect(order).toEqual([])
    first?.()
    first?.()
    const leave = await waiting[0]
    expect(order).toEqual([1])
    leave?.()
    await waiting[1]
    expect(order).toEqual([1, 2])
  })

  test('a signal ends the wait, and the place goes to the next one', async () => {
    const places = handlerPlacesOf(driverOver({}, 2))
    const leave = await places.take()
    const abort = new AbortController()
    const given = places.take(abort.signal)
    const next = places.take()
    abort.abort(new Error('stopped'))
    await expect(given).rejects.toThrow('stopped')
    leave()
    expect(await next).toBeTypeOf('function')
  })

  test('nobody waits where the size is unknown, or one', async () => {
    const unknown = { capabilities: {} } as unknown as Driver<never>
    for (const driver of [unknown, driverOver({}, 1)]) {
      const places = handlerPlacesOf(driver)
      await places.take()
      expect(await places.take()).toBeTypeOf('function')
    }
  })
})
