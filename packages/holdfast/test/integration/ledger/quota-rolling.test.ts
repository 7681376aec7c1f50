import { barrier } from '@holdfast/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Accepted } from '../../../src/ledger/verdict.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })

/** Lets time pass for one key: everything that is in its window gets older. */
async function pass(key: string, minutes: number): Promise<void> {
  await fixture.observer.query(
    `WITH a AS (SELECT bucket, id FROM holdfast.account WHERE key = $1), h AS (
       UPDATE holdfast.hold h SET expires_at = h.expires_at - $2 * interval '1 min' FROM a
       WHERE h.bucket = a.bucket AND h.account = a.id AND h.state = 0
     )
     UPDATE holdfast.balance b SET due_at = b.due_at - $2 * interval '1 min' FROM a
     WHERE b.bucket = a.bucket AND b.account = a.id`,
    [key, minutes],
  )
}

const hourly = (limit = 3): ReturnType<typeof fixture.hf.quota> =>
  fixture.hf.quota({ name: `rolling-${limit}`, limit, rolling: '1 h' })

describe('a rolling window', () => {
  test('gives back each use when it leaves the window, and says when', async () => {
    const quota = hourly()
    const key = fresh()
    const first = (await quota.consume(key, 1, once())) as Accepted<number>
    await pass(key, 20)
    const second = (await quota.consume(key, 2, once())) as Accepted<number>
    const secondAt = second.expiresAt as Date
    const firstAt = new Date((first.expiresAt as Date).getTime() - 20 * 60_000)

    expect(await quota.consume(key, 1, once())).toMatchObject({
      ok: false,
      available: 0,
      retryAt: firstAt,
    })
    expect(await quota.consume(key, 3, once())).toMatchObject({ ok: false, retryAt: secondAt })
    expect(await quota.consume(key, 4, once())).toMatchObject({ ok: false, retryAt: undefined })

    await pass(key, 40)
    expect(await quota.consume(key, 2, once())).toMatchObject({ ok: false, available: 1 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: true, available: 0 })
    await pass(key, 20)
    expect(await quota.consume(key, 2, once())).toMatchObject({ ok: true, available: 0 })
  })

  test('says when also if what fills it came at the same moment', async () => {
    const quota = hourly()
    const key = fresh()
    const verdicts = await Promise.all(
      Array.from({ length: 8 }, async () => await quota.consume(key, 1, once())),
    )
    const back = verdicts.flatMap((verdict) => (verdict.ok ? verdict.expiresAt : []))
    expect(back).toHaveLength(3)
    for (const verdict of verdicts) {
      if (!verdict.ok) expect(back).toContainEqual(verdict.retryAt)
    }
  })

  test('never has more in any hour than the limit, and never less than would fit', async () => {
    const steps = fc.array(
      fc.record({ minutes: fc.integer({ min: 0, max: 45 }), cost: fc.integer({ min: 1, max: 6 }) }),
      { minLength: 1, maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const quota = hourly(5)
        const key = fresh()
        const used: { age: number; cost: number }[] = []
        for (const { minutes, cost } of history) {
          if (minutes > 0) await pass(key, minutes)
          for (const use of used) use.age += minutes
          const inWindow = used.reduce((sum, use) => sum + (use.age < 60 ? use.cost : 0), 0)
          const verdict = await quota.consume(key, cost, once())
          expect(verdict.ok).toBe(inWindow + cost <= 5)
          if (verdict.ok) used.push({ age: 0, cost })
        }
      }),
      { numRuns: 25 },
    )
  })

  test('holds with all callers at once', async () => {
    const quota = hourly(10)
    const key = fresh()
    const start = barrier(40)
    const verdicts = await Promise.all(
      Array.from({ length: 40 }, async () => {
        await start()
        return await quota.consume(key, 1, once())
      }),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(10)
  })

  test('is not charged twice by a retry', async () => {
    const quota = hourly()
    const [key, operation] = [fresh(), once()]
    const first = await quota.consume(key, 2, operation)
    expect(await quota.consume(key, 2, operation)).toEqual({ ...first, replayed: true })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: true, available: 0 })
  })

  test('gets back what is released, once', async () => {
    const quota = hourly()
    const key = fresh()
    const used = (await quota.consume(key, 3, once())) as Accepted<number>
    expect(await quota.release(used.holdId as string)).toMatchObject({ ok: true, available: 3 })
    expect(await quota.release(used.holdId as string)).toMatchObject({ ok: true, replayed: true })
    expect(await quota.consume(key, 3, once())).toMatchObject({ ok: true, available: 0 })
  })

  test('has no holds and no refunds: what is settled would never leave it', async () => {
    const quota = hourly()
    const key = fresh()
    const used = (await quota.consume(key, 1, once())) as Accepted<number>
    const holdId = used.holdId as string
    for (const attempt of [
      () => quota.hold(key, 1, { ...once(), ttl: '1 min' }),
      () => quota.withHold(key, { ...once(), estimate: 1, ttl: '1 min' }, async () => 1),
      () => quota.line(key, 1, { ttl: '1 min' }),
      () => quota.refund(key, 1, { ...once(), of: fresh() }),
      () => quota.line(key, 1, { of: fresh() }),
      () => quota.settle(holdId),
      () => quota.extend(holdId, '1 min'),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
  })
})
