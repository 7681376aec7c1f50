import { barrier } from '@holdfast/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Accepted } from '../../../src/ledger/verdict.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })

/** One a minute: slow enough that the time a test takes fills nothing up. */
const perMinute = (burst: number): ReturnType<typeof fixture.hf.quota> =>
  fixture.hf.quota({ name: `rate-${burst}`, limit: 60, rate: '1 h', burst })

/** Lets time pass for one key. */
async function pass(key: string, seconds: number): Promise<void> {
  await fixture.observer.query(
    `UPDATE holdfast.balance b SET refilled_at = b.refilled_at - $2 * interval '1 second'
     FROM holdfast.account a WHERE a.key = $1 AND b.bucket = a.bucket AND b.account = a.id`,
    [key, seconds],
  )
}

async function refilledAt(key: string): Promise<number> {
  const { rows } = await fixture.observer.query<{ at: Date }>(
    `SELECT b.refilled_at AS at FROM holdfast.balance b
     JOIN holdfast.account a ON a.bucket = b.bucket AND a.id = b.account WHERE a.key = $1`,
    [key],
  )
  return rows[0]?.at.getTime() as number
}

describe('a rate', () => {
  test('lets a burst through, then one at a time, and says when', async () => {
    const quota = perMinute(3)
    const key = fresh()
    expect(await quota.consume(key, 2, once())).toMatchObject({ ok: true, available: 1 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: true, available: 0 })
    const since = await refilledAt(key)
    expect(await quota.consume(key, 1, once())).toMatchObject({
      ok: false,
      available: 0,
      retryAt: new Date(since + 60_000),
    })
    expect(await quota.consume(key, 3, once())).toMatchObject({
      ok: false,
      retryAt: new Date(since + 180_000),
    })
    expect(await quota.consume(key, 4, once())).toMatchObject({ ok: false, retryAt: undefined })

    await pass(key, 59)
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false })
    await pass(key, 1)
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false })
  })

  test('does not save up more than a burst while nobody asks', async () => {
    const quota = perMinute(3)
    const key = fresh()
    await quota.consume(key, 3, once())
    await pass(key, 86_400)
    expect(await quota.consume(key, 4, once())).toMatchObject({ ok: false })
    expect(await quota.consume(key, 3, once())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false })
  })

  test('is exact over any series of moments, also in what it refuses', async () => {
    // Tens of seconds: what the test itself takes is less than that and changes no answer.
    const steps = fc.array(
      fc.record({ tens: fc.integer({ min: 0, max: 30 }), cost: fc.integer({ min: 1, max: 5 }) }),
      { minLength: 1, maxLength: 15 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const quota = perMinute(4)
        const key = fresh()
        let [tokens, seconds] = [4, 0]
        for (const { tens, cost } of history) {
          if (tens > 0) await pass(key, tens * 10)
          seconds += tens * 10
          const gained = Math.floor(seconds / 60)
          const full = tokens + gained >= 4
          tokens = full ? 4 : tokens + gained
          seconds = full ? 0 : seconds - gained * 60
          const verdict = await quota.consume(key, cost, once())
          expect(verdict).toMatchObject({ ok: cost <= tokens })
          if (verdict.ok) tokens -= cost
          expect(verdict.available).toBe(tokens)
        }
      }),
      { numRuns: 25 },
    )
  })

  test('lets exactly a burst through with all callers at once', async () => {
    const quota = perMinute(7)
    const key = fresh()
    const start = barrier(30)
    const verdicts = await Promise.all(
      Array.from({ length: 30 }, async () => {
        await start()
        return await quota.consume(key, 1, once())
      }),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(7)
  })

  test('has the limit itself as burst unless another is given', async () => {
    const quota = fixture.hf.quota({ name: 'rate-default', limit: 5, rate: '1 h' })
    const key = fresh()
    expect(await quota.consume(key, 5, once())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false })
  })

  test('a retry is answered as before', async () => {
    const quota = perMinute(3)
    const [key, operation] = [fresh(), once()]
    expect(await quota.consume(key, 2, operation)).toMatchObject({ ok: true })
    expect(await quota.consume(key, 2, operation)).toMatchObject({ ok: true, replayed: true })
    expect(await quota.consume(key, 2, once())).toMatchObject({ ok: false })
  })

  test('a refund comes back at once', async () => {
    const quota = perMinute(3)
    const [key, taken] = [fresh(), once()]
    await quota.consume(key, 3, taken)
    expect(await quota.refund(key, 2, { ...once(), of: taken.operationId })).toMatchObject({
      ok: true,
      available: 2,
    })
    expect(await quota.consume(key, 2, once())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false })
  })

  test('what comes back late does not make the burst larger', async () => {
    const quota = perMinute(3)
    const [key, taken] = [fresh(), once()]
    await quota.consume(key, 2, taken)
    const held = (await quota.hold(key, 1, { ...once(), ttl: '1 h' })) as Accepted<number>
    // Everything has come back by itself by then.
    await pass(key, 86_400)
    await quota.refund(key, 2, { ...once(), of: taken.operationId })
    await quota.release(held.holdId as string)
    expect(await quota.consume(key, 3, once())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false })
  })

  test('a lowered burst counts at once', async () => {
    const key = fresh()
    const of = (burst: number): ReturnType<typeof fixture.hf.quota> =>
      fixture.hf.quota({ name: 'rate-lowered', limit: 60, rate: '1 h', burst })
    await of(10).consume(key, 1, once())
    expect(await of(2).consume(key, 3, once())).toMatchObject({ ok: false })
    expect(await of(2).consume(key, 2, once())).toMatchObject({ ok: true, available: 0 })
  })

  test('cannot be declared where it would not be exact', async () => {
    for (const limit of [0, 600_000, 10_000_000]) {
      const quota = fixture.hf.quota({ name: 'rate-fine', limit, rate: '1 s' })
      await expect(quota.consume(fresh(), 1, once())).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
    const kilobytes = fixture.hf.quota({ name: 'rate-fine', limit: 10_000, rate: '1 s' })
    expect(await kilobytes.consume(fresh(), 1, once())).toMatchObject({ ok: true })
  })
})
