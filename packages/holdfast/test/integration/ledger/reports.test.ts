/** Keys, usage by period, key and feature, and what was used beyond the limit. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser, growOlder } from '../../support/ledger-past.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })
const around = (): { from: Date; to: Date } => ({
  from: new Date(Date.now() - 3_600_000),
  to: new Date(Date.now() + 3_600_000),
})

interface Step {
  readonly act: string
  readonly amount: number
  readonly limit: number
  readonly which: number
}

describe('keys', () => {
  test('come in their order, page by page, with every scope once', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'day' })
    const names = ['a', 'b', 'B', 'ä', 'z', "o'x", '"', '10', '9']
    for (const key of names) await quota.consume(key, 1, operation())
    await quota.consume('b', 2, { ...operation(), scope: 'team' })
    const seen: [string, string, number][] = []
    let after: string | undefined
    let pages = 0
    do {
      const page = await fixture.hf.ledger.keys(quota.name, { limit: 2, after })
      for (const { key, scope, available } of page.keys) seen.push([key, scope, available])
      after = page.next
      pages += 1
    } while (after !== undefined)
    expect(seen.map(([key]) => key).toSorted()).toEqual([...names, 'b'].toSorted())
    expect(seen.filter(([key]) => key === 'b')).toEqual([
      ['b', 'b', 9],
      ['b', 'team', 8],
    ])
    expect(pages).toBeGreaterThanOrEqual(5)
    expect(await fixture.hf.ledger.keys(fresh())).toEqual({ keys: [], next: undefined })
    for (const wrong of ['x', '[5,null]', '[0]', '[0,5]', '{}']) {
      await expect(fixture.hf.ledger.keys(quota.name, { after: wrong })).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
  })

  test('of calendar windows show the last that has begun', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'minute' })
    await quota.consume('a', 4, operation())
    // As if it had been a minute of yesterday.
    await fixture.observer.query(
      `UPDATE holdfast.account SET window_start = window_start - interval '1 day',
         window_end = window_end - interval '1 day' WHERE book = $1`,
      [quota.name],
    )
    const { keys } = await fixture.hf.ledger.keys(quota.name)
    expect(keys).toMatchObject([{ key: 'a', available: 6, window: expect.any(Object) }])
  })
})

describe('usage', () => {
  test('is what was taken and settled, less what was refunded, by the feature it was taken for', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'month' })
    const id = fresh()
    await quota.consume('a', 30, { operationId: id, feature: 'chat' })
    await quota.consume('a', 5, operation())
    await quota.consume('b', 7, { ...operation(), feature: 'chat' })
    await quota.refund('a', 10, { ...operation(), of: id })
    const held = await quota.hold('a', 20, { ...operation(), ttl: '1 h', feature: 'image' })
    await quota.settle(held.ok ? (held.holdId as string) : '', 15)
    const gone = await quota.hold('b', 20, { ...operation(), ttl: '1 h', feature: 'image' })
    await quota.release(gone.ok ? (gone.holdId as string) : '')
    await quota.adjust('b', 3, { ...operation(), reason: 'why' })
    const by = async (...what: ('key' | 'feature' | 'scope')[]): Promise<unknown[]> =>
      (await fixture.hf.ledger.usage(quota.name, { ...around(), by: what })).rows.map((row) => [
        ...what.map((one) => row[one]),
        row.used,
        row.refunded,
      ])
    expect(await by('key', 'feature')).toEqual([
      ['a', 'chat', 20, 10],
      ['a', 'image', 15, 0],
      ['a', undefined, 5, 0],
      ['b', 'chat', 7, 0],
    ])
    expect(await by('feature')).toEqual([
      ['chat', 27, 10],
      ['image', 15, 0],
      [undefined, 5, 0],
    ])
    expect(await by()).toEqual([[47, 10]])
    expect(await by('scope')).toEqual([
      ['a', 40, 10],
      ['b', 7, 0],
    ])
    const { rows } = await fixture.hf.ledger.usage(quota.name, { ...around(), key: 'b' })
    expect(rows).toMatchObject([{ used: 7, period: undefined }])
  })

  test.each(['hour', 'day', 'week', 'month'] as const)('is told apart by the %s', async (per) => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    await quota.consume('a', 1, operation())
    const timeZone = 'America/Santiago'
    const { rows } = await fixture.hf.ledger.usage(quota.name, { ...around(), per, timeZone })
    const { rows: said } = await fixture.observer.query(
      `SELECT date_trunc($1, now(), $2) AS start`,
      [per, timeZone],
    )
    expect(rows).toMatchObject([{ used: 1, period: said[0].start }])
  })

  test('of a rolling window is what came in, less what was released', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, rolling: '1 h' })
    await quota.consume('a', 4, { ...operation(), feature: 'x' })
    const used = await quota.consume('a', 3, { ...operation(), feature: 'y' })
    await quota.release(used.ok ? (used.holdId as string) : '')
    const { rows } = await fixture.hf.ledger.usage(quota.name, { ...around(), by: ['feature'] })
    expect(rows).toMatchObject([
      { feature: 'x', used: 4 },
      { feature: 'y', used: 0, refunded: 3 },
    ])
  })

  test('says how much went beyond the limit', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'month', overage: true })
    const steps = [6, 6, 5]
    for (const step of steps) {
      expect(await quota.consume('a', step, operation())).toMatchObject({ ok: true })
    }
    expect(await quota.peek('a')).toMatchObject({ available: -7, used: 17, retryAt: undefined })
    const { rows } = await fixture.hf.ledger.usage(quota.name, { ...around(), by: ['key'] })
    expect(rows).toMatchObject([{ used: 17, over: 7 }])
    const held = await quota.hold('b', 12, { ...operation(), ttl: '1 h' })
    await quota.settle(held.ok ? (held.holdId as string) : '', 15)
    const ofB = await fixture.hf.ledger.usage(quota.name, { ...around(), key: 'b' })
    expect(ofB.rows).toMatchObject([{ used: 15, over: 5 }])
    expect(
      (await fixture.hf.ledger.audit()).problems.filter((one) => one.book === quota.name),
    ).toEqual([])
    for (const window of [{ rate: '1 s' }, { rolling: '1 s' }] as const) {
      expect(() =>
        fixture.hf.quota({ name: fresh(), limit: 1, ...window, overage: true }),
      ).toThrowError(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
  })

  // What is put aside is not used, and what is settled is, whatever was put aside for it.
  test.each([
    [90, 30, 30, 120, 20],
    [90, 50, 60, 150, 50],
    [90, 50, 5, 95, 0],
    [30, 90, 0, 30, 0],
  ])(
    '%i used, %i put aside, %i settled: %i, and %i over',
    async (first, held, settled, used, over) => {
      const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'month', overage: true })
      await quota.consume('a', first, operation())
      const hold = await quota.hold('a', held, { ...operation(), ttl: '1 h' })
      const holdId = hold.ok ? (hold.holdId as string) : ''
      await (settled === 0 ? quota.release(holdId) : quota.settle(holdId, settled))
      const { rows } = await fixture.hf.ledger.usage(quota.name, around())
      expect(rows).toMatchObject([{ used, over }])
    },
  )

  // Whatever the limits were in between: never below zero, and never more than was used.
  test('beyond limits that change', async () => {
    const step = fc.record({
      act: fc.constantFrom('take', 'take', 'refund', 'refund', 'limit'),
      amount: fc.integer({ min: 1, max: 15 }),
      limit: fc.integer({ min: 0, max: 60 }),
      which: fc.nat(),
    })
    const holds = async (steps: readonly Step[]): Promise<void> => {
      const quota = fixture.hf.quota({ name: fresh(), limit: 20, per: 'month', overage: true })
      const taken: { operationId: string; left: number }[] = []
      let [limit, used, over] = [20, 0, 0]
      for (const { act, amount, limit: next, which } of steps) {
        const last = taken[which % taken.length]
        if (act === 'limit') {
          limit = next
          await quota.setLimit('a', limit, operation())
        } else if (act === 'take') {
          const { operationId } = operation()
          taken.push({ operationId, left: amount })
          await quota.consume('a', amount, { operationId })
          used += amount
          over += Math.min(amount, Math.max(used - limit, 0))
        } else if (last !== undefined && last.left > 0) {
          const given = Math.min(amount, last.left)
          last.left -= given
          await quota.refund('a', given, { of: last.operationId, ...operation() })
          used -= given
          over = Math.max(over - given, 0)
        }
        expect(over).toBeLessThanOrEqual(used)
      }
      const { rows } = await fixture.hf.ledger.usage(quota.name, around())
      expect(rows).toMatchObject(taken.length === 0 ? [] : [{ used, over }])
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), holds), { numRuns: 15 })
  })

  test('by feature is not complete where nothing says what was refunded', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'month' })
    const { operationId } = operation()
    await quota.consume('a', 30, { operationId, feature: 'chat' })
    await quota.refund('a', 10, { of: operationId, ...operation() })
    const asked = { ...around(), by: ['feature'] as const }
    expect(await fixture.hf.ledger.usage(quota.name, asked)).toMatchObject({
      rows: [{ feature: 'chat', used: 20 }],
      complete: true,
    })
    await asSuperuser(
      fixture.observer,
      `DELETE FROM holdfast.operation o USING holdfast.account a
       WHERE a.book = '${quota.name}' AND o.bucket = a.bucket AND o.account = a.id AND o.kind = 2`,
    )
    expect(await fixture.hf.ledger.usage(quota.name, asked)).toMatchObject({ complete: false })
    expect(await fixture.hf.ledger.usage(quota.name, around())).toMatchObject({ complete: true })
  })

  test('of a rate is not told, since what flows in is booked with what is taken', async () => {
    const rate = fixture.hf.quota({ name: fresh(), limit: 100, rate: '1 s' })
    await rate.consume('a', 90, operation())
    await expect(fixture.hf.ledger.usage(rate.name, around())).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test('of credits on an overdraft says how much went below zero', async () => {
    const credits = fixture.hf.credits({ name: fresh(), overdraft: 20 })
    await credits.grant('a', 10, operation())
    await credits.spend('a', 8, operation())
    await credits.spend('a', 9, operation())
    const { rows } = await fixture.hf.ledger.usage(credits.name, around())
    expect(rows).toMatchObject([{ used: 17, over: 7 }])
  })

  test('says whether months are missing', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    await quota.consume('a', 1, operation())
    const from = new Date(Date.now() - 300 * 86_400_000)
    const asked = { from, to: new Date(Date.now() + 3_600_000) }
    expect(await fixture.hf.ledger.usage(quota.name, asked)).toMatchObject({ complete: true })
    await asSuperuser(fixture.observer, 'DELETE FROM holdfast.follower')
    await growOlder(fixture.observer, 6)
    await fixture.hf.ledger.maintain({ keepMonths: 1 })
    await quota.consume('a', 1, operation())
    expect(await fixture.hf.ledger.usage(quota.name, asked)).toMatchObject({
      complete: false,
      rows: [{ used: 1 }],
    })
    expect(await fixture.hf.ledger.usage(quota.name, around())).toMatchObject({ complete: true })
  })

  test.each([
    { from: new Date(Number.NaN) },
    { to: 'today' },
    { per: 'minute' },
    { per: 'year' },
    { timeZone: 'CET' },
    { by: ['moon'] },
    { by: 'key' },
  ])('is not told of what makes no sense: %j', async (wrong) => {
    const asked = { ...around(), ...wrong } as never
    await expect(fixture.hf.ledger.usage('book', asked)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })
})

describe('credits', () => {
  test('cost what the price list says', async () => {
    const credits = fixture.hf.credits({ name: fresh(), prices: { chat: 1, image: 25 } })
    await credits.grant('a', 100, operation())
    const id = operation()
    expect(await credits.charge('a', 'image', { ...id, quantity: 2 })).toMatchObject({
      ok: true,
      available: 50,
    })
    expect(await credits.charge('a', 'image', { ...id, quantity: 2 })).toMatchObject({
      ok: true,
      replayed: true,
    })
    expect(await credits.charge('a', 'chat', operation())).toMatchObject({ available: 49 })
    expect(await credits.charge('a', 'image', { ...operation(), quantity: 2 })).toMatchObject({
      ok: false,
      reason: 'insufficient',
    })
    const unknown = credits.charge('a', 'video' as 'chat', operation())
    await expect(unknown).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(credits.charge('a', 'constructor' as 'chat', operation())).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(
      credits.charge('a', 'chat', { ...operation(), quantity: 0 }),
    ).rejects.toMatchObject({ code: 'LEDGER_AMOUNT_INVALID' })
    expect(() => fixture.hf.credits({ name: fresh(), prices: { chat: 1.5 } })).toThrow(/prices/)
    const { rows } = await fixture.hf.ledger.usage(credits.name, { ...around(), by: ['feature'] })
    expect(rows).toMatchObject([
      { feature: 'chat', used: 1 },
      { feature: 'image', used: 50 },
    ])
  })

  test('are renewed once in each period, and lapse or roll over at its end', async () => {
    const credits = fixture.hf.credits({ name: fresh() })
    const monthly = { amount: 100, per: 'month', rollover: { limit: 30, for: '31 days' } } as const
    expect(await credits.renew('a', monthly)).toMatchObject({ ok: true, available: 100 })
    expect(await credits.renew('a', monthly)).toMatchObject({ ok: true, replayed: true })
    expect(await credits.renew('a', { ...monthly, amount: 200 })).toMatchObject({
      ok: false,
      reason: 'conflict',
    })
    const daily = { plan: 'daily', amount: 5, per: 'day', timeZone: 'Asia/Tokyo' } as const
    expect(await credits.renew('a', daily)).toMatchObject({ ok: true, available: 105 })
    const { rows } = await fixture.observer.query(
      `SELECT date_trunc('month', now(), 'UTC') + interval '1 month' AS month,
         date_trunc('day', now(), 'Asia/Tokyo') + interval '1 day' AS day`,
    )
    const ends = (await credits.grants('a')).map(({ expiresAt }) => expiresAt)
    expect(ends.toSorted((a, b) => Number(a) - Number(b))).toEqual(
      [rows[0].day, rows[0].month].toSorted((a, b) => a - b),
    )
    await credits.spend('a', 45, operation())
    // As if both periods were over.
    await asSuperuser(
      fixture.observer,
      `UPDATE holdfast.credit_grant g SET expires_at = now() - interval '1 s'
         FROM holdfast.account a WHERE a.id = g.account AND a.book = '${credits.name}';
       UPDATE holdfast.balance b SET due_at = now() - interval '1 s'
         FROM holdfast.account a WHERE a.id = b.account AND a.book = '${credits.name}'`,
    )
    expect(await fixture.hf.ledger.balance(credits.name, 'a')).toMatchObject({ due: true })
    expect(await credits.balance('a')).toMatchObject({ available: 30, due: false })
    expect(await credits.balance('nobody')).toMatchObject({ available: 0, sequence: 0 })
    // Each key of a scope has its own.
    for (const key of ['ann', 'bob', 'x'.repeat(512)]) {
      const inTeam = { ...monthly, scope: 'acme' }
      expect(await credits.renew(key, inTeam)).toMatchObject({ ok: true, replayed: false })
      expect(await credits.renew(key, inTeam)).toMatchObject({ ok: true, replayed: true })
    }
    for (const wrong of [{ per: 'lifetime' }, { per: 'year' }, { timeZone: 'x' }]) {
      await expect(credits.renew('a', { ...monthly, ...wrong } as never)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
  })
})
