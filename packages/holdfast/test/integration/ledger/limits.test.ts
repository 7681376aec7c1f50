/** A limit that is set for one key: what it changes, when, and what it never does. */
import { barrier, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })

function quotaOf(
  per: 'lifetime' | 'month' = 'month',
): ReturnType<typeof fixture.hf.quota<'number'>> {
  return fixture.hf.quota({ name: `q-${fresh()}`, limit: 10, per })
}

describe.each(['lifetime', 'month'] as const)('a limit per %s', (per) => {
  test('wins over the declared one, in both directions, until it is handed back', async () => {
    const quota = quotaOf(per)
    const key = fresh()
    await quota.consume(key, 8, operation())
    expect(await quota.setLimit(key, 20, operation())).toMatchObject({ ok: true, allowance: 20 })
    expect(await quota.consume(key, 12, operation())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(key, 1, operation())).toMatchObject({ ok: false })
    await quota.setLimit(key, 25, operation())
    expect(await quota.peek(key)).toMatchObject({ limit: 25, limitIsSet: true, available: 5 })

    // Below what is used: admission stops, and nothing else happens.
    await quota.setLimit(key, 3, operation())
    expect(await quota.peek(key)).toMatchObject({ limit: 3, available: -17, used: 20 })
    expect(await quota.consume(key, 1, operation())).toMatchObject({ ok: false, available: -17 })

    await quota.setLimit(key, null, operation())
    expect(await quota.peek(key)).toMatchObject({ limit: 10, limitIsSet: false, available: -10 })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('is an operation: repeated it is answered, changed it is a conflict', async () => {
    const quota = quotaOf(per)
    const key = fresh()
    const once = operation()
    const first = await quota.setLimit(key, 20, once)
    expect(await quota.setLimit(key, 20, once)).toEqual({ ...first, replayed: true })
    expect(await quota.setLimit(key, 21, once)).toMatchObject({
      reason: 'conflict',
      field: 'limit',
    })
    expect(await quota.setLimit(key, null, once)).toMatchObject({ field: 'limit' })
    expect(await quota.consume(key, 1, once)).toMatchObject({ reason: 'conflict' })
    expect(await quota.peek(key)).toMatchObject({ limit: 20 })
  })

  test('joins the caller: undone with it, and never poisons it', async () => {
    const quota = quotaOf(per)
    const key = fresh()
    const tx = await callerTransaction(fixture)
    await quota.setLimit(tx, key, 20, operation())
    expect(await quota.consume(tx, key, 15, operation())).toMatchObject({ ok: true })
    await tx.query('ROLLBACK')
    expect(await quota.peek(key)).toMatchObject({ limit: 10, used: 0, limitIsSet: false })
  })

  test('set by many at once, and used by many at once, keeps the ledger whole', async () => {
    const quota = quotaOf(per)
    const key = fresh()
    const start = barrier(24)
    const results = await Promise.all(
      Array.from({ length: 24 }, async (_, at) => {
        await start()
        return at % 3 === 0
          ? quota.setLimit(key, 100 + at, operation())
          : quota.consume(key, 1, operation())
      }),
    )
    expect(results.filter(({ ok }) => !ok).every((v) => !v.ok && v.reason === 'insufficient')).toBe(
      true,
    )
    const { limit } = await quota.peek(key)
    expect(limit).toBeGreaterThanOrEqual(100)
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })
})

describe('windows', () => {
  test('that are opened later start with it', async () => {
    const quota = quotaOf()
    const key = fresh()
    await quota.setLimit(key, 3, operation())
    expect(await quota.consume(key, 4, operation())).toMatchObject({ ok: false, allowance: 3 })
    const { rows } = await fixture.observer.query(
      `SELECT window_start IS NOT NULL AS is_window, allowance::int, limit_is_set
       FROM holdfast.balances WHERE key = $1 ORDER BY window_start NULLS FIRST`,
      [key],
    )
    // The limit itself, this month and the next.
    expect(rows).toEqual(
      [false, true, true].map((is_window) => ({ is_window, allowance: 3, limit_is_set: true })),
    )
  })

  test('that are opened while it is being set wait for it', async () => {
    const quota = quotaOf()
    const key = fresh()
    // The key has a limit already, so that its row is there to be waited for.
    await quota.setLimit(key, 5, operation())
    await fixture.observer.query(
      `DELETE FROM holdfast.balance b USING holdfast.account a
       WHERE a.id = b.account AND a.key = $1 AND a.window_start > '-infinity'`,
      [key],
    )
    await fixture.observer.query(
      `DELETE FROM holdfast.account WHERE key = $1 AND window_start > '-infinity'`,
      [key],
    )
    const setter = await callerTransaction(fixture)
    await setter.query(
      `UPDATE holdfast.balance SET allowance = 2
       WHERE account = (SELECT id FROM holdfast.account WHERE key = $1)`,
      [key],
    )
    const opener = await callerTransaction(fixture)
    const pid = await pidOf(opener)
    const consumed = quota.consume(opener, key, 3, operation())
    expect(await waitUntilBlocked(fixture.observer, pid)).toEqual([await pidOf(setter)])
    await setter.query('COMMIT')
    expect(await consumed).toMatchObject({ ok: false, allowance: 2 })
  })

  test('that somebody is just opening are waited for, so that none is missed', async () => {
    const quota = quotaOf()
    const key = fresh()
    const opener = await callerTransaction(fixture)
    expect(await quota.consume(opener, key, 1, operation())).toMatchObject({ ok: true })
    const setter = await callerTransaction(fixture)
    const pid = await pidOf(setter)
    const set = quota.setLimit(setter, key, 1, operation())
    expect(await waitUntilBlocked(fixture.observer, pid)).toEqual([await pidOf(opener)])
    await opener.query('COMMIT')
    await set
    await setter.query('COMMIT')
    expect(await quota.consume(key, 1, operation())).toMatchObject({ ok: false, allowance: 1 })
  })
})

describe('refused', () => {
  test('a limit that is none, and one for a rate', async () => {
    const quota = quotaOf()
    for (const limit of [-1, 1.5, Number.NaN, 2 ** 53, '5', undefined]) {
      await expect(quota.setLimit(fresh(), limit as number, operation())).rejects.toMatchObject({
        code: 'LEDGER_AMOUNT_INVALID',
      })
    }
    await expect(quota.setLimit(fresh(), 2n ** 60n, operation())).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_UNSAFE',
    })
    const rate = fixture.hf.quota({ name: fresh(), limit: 5, rate: '1 s' })
    await expect(rate.setLimit(fresh(), 5, operation())).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test('by a wall: a verdict, and nothing changed', async () => {
    const { rows } = await fixture.observer.query(
      `WITH opened AS (
         SELECT holdfast.open_account(holdfast.bucket_of('w'), x.id, x.id, 'wall', 'w', 'w', NULL,
           NULL, 5, true, now()), x.id
         FROM (SELECT holdfast.key_account('w', 'wall', 'w') AS id) x
       ) SELECT id FROM opened`,
    )
    const quota = fixture.hf.quota({ name: 'wall', limit: 5, per: 'lifetime' })
    expect(await quota.consume('w', 4, operation())).toMatchObject({ ok: true, available: 1 })
    expect(await quota.setLimit('w', 3, operation())).toMatchObject({
      ok: false,
      reason: 'insufficient',
      allowance: 5,
      available: 1,
    })
    expect(await quota.setLimit('w', 4, operation())).toMatchObject({ ok: true, available: 0 })
    expect(rows).toHaveLength(1)
  })
})
