import { barrier } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { createHoldfast } from '../../../src/index.ts'
import type { RateLimit } from '../../../src/rate-limit/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { rejection, type Setting } from './setting.ts'

/** Rate limits, in statements of their own and in the caller's transaction, by the client's own handle. */
export function rateLimit<Tx>(at: Setting<Tx>): void {
  describe.each([
    ['a window', { per: 'month', timeZone: 'America/Santiago' }],
    ['a rate', { rate: 36_500 * 86_400_000, burst: 5 }],
  ] as const)('%s', (_, span) => {
    const create = async (): Promise<RateLimit<Tx>> => {
      await migrate(at.harness.driver)
      return createHoldfast(at.harness.driver).rateLimit({ name: fresh(), limit: 5, ...span })
    }

    test('alone: no more than the limit is granted', async () => {
      const [limit, key] = [await create(), fresh()]
      const together = barrier(8)
      const verdicts = await Promise.all(
        Array.from({ length: 8 }, async () => {
          await together()
          return await limit.consume(key)
        }),
      )
      expect(verdicts.filter(({ ok }) => ok)).toHaveLength(5)
      expect(await limit.peek(key)).toMatchObject({ ok: false, available: 0 })
      await limit.reset(key)
      expect(await limit.consume(key, 5)).toMatchObject({ ok: true, available: 0 })
    })

    test("joined: what it used ends with the caller's transaction", async () => {
      const [limit, key] = [await create(), fresh()]
      await at.harness.own(async (tx) => {
        expect(await limit.consume(tx, key, 2)).toMatchObject({ ok: true, available: 3 })
        expect(await limit.consume(tx, key, 4)).toMatchObject({ ok: false, available: 3 })
      })
      const undone = new Error('undone')
      const failed = at.harness.own(async (tx) => {
        await limit.consume(tx, key, 3)
        throw undone
      })
      expect(await rejection(failed)).toBeDefined()
      expect(await limit.peek(key)).toMatchObject({ ok: true, available: 3 })
    })
  })
}
