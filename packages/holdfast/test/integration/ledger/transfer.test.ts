/** Transfers give what they take; and "as much as there is" takes that much, once. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { PreparedLine } from '../../../src/ledger/book.ts'
import type { Verdict } from '../../../src/ledger/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })
const across = (): { operationId: string; acrossScopes: true } => ({
  ...once(),
  acrossScopes: true,
})

const available = async (book: string, key: string): Promise<number> =>
  (await fixture.hf.ledger.balance(book, key)).available

async function wallets(): Promise<{
  readonly wallet: ReturnType<typeof fixture.hf.credits<'number'>>
  readonly fees: ReturnType<typeof fixture.hf.credits<'number'>>
}> {
  const wallet = fixture.hf.credits({ name: fresh() })
  const fees = fixture.hf.credits({ name: fresh() })
  await wallet.grant('ann', 100, once())
  return { wallet, fees }
}

describe('a transfer', () => {
  test('moves an amount over several legs and books, all or none, once', async () => {
    const { wallet, fees } = await wallets()
    const send = async (amount: number, id: { operationId: string }): Promise<Verdict<number>> =>
      await fixture.hf.ledger.transfer(
        {
          from: [await wallet.line('ann', amount)],
          to: [wallet.grantLine('bob', amount - 3), fees.grantLine('house', 3)],
        },
        { ...id, acrossScopes: true },
      )
    const id = once()
    const first = await send(30, id)
    expect(first).toMatchObject({ ok: true, replayed: false, available: 70 })
    expect(await send(30, id)).toEqual({ ...first, replayed: true })
    expect(await send(31, id)).toMatchObject({ ok: false, reason: 'conflict', field: 'amount' })
    expect(await send(71, once())).toMatchObject({ ok: false, reason: 'insufficient', key: 'ann' })
    expect(await available(wallet.name, 'ann')).toBe(70)
    expect(await available(wallet.name, 'bob')).toBe(27)
    expect(await available(fees.name, 'house')).toBe(3)
    const { movements } = await fixture.hf.ledger.history(wallet.name, 'bob')
    expect(movements.map(({ kind, credit }) => [kind, credit])).toEqual([['transfer-in', 27]])
    expect((await fixture.hf.ledger.history(wallet.name, 'ann')).movements[0]).toMatchObject({
      kind: 'transfer-out',
      debit: 30,
    })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('arrives as a grant with its terms, and can be spent', async () => {
    const { wallet } = await wallets()
    const to = [wallet.grantLine('bob', 10, { expiresIn: '1 h', priority: 3 })]
    await fixture.hf.ledger.transfer({ from: [await wallet.line('ann', 10)], to }, across())
    expect(await wallet.grants('bob')).toMatchObject([
      { amount: 10, remaining: 10, priority: 3, expiresAt: expect.any(Date) },
    ])
    expect(await wallet.spend('bob', 10, once())).toMatchObject({ ok: true, available: 0 })
    expect(await wallet.grants('ann')).toMatchObject([{ remaining: 90 }])
  })

  test('goes between faces of all kinds', async () => {
    const { wallet } = await wallets()
    const stock = fixture.hf.stock({ name: fresh() })
    const quota = fixture.hf.quota({ name: fresh(), limit: 50, per: 'day' })
    const receive = stock.receiveLine({ sku: 'coin', quantity: 40 })
    const bought = await fixture.hf.ledger.transfer(
      { from: [await wallet.line('ann', 40)], to: [receive] },
      across(),
    )
    expect(bought.ok).toBe(true)
    expect((await stock.level('coin')).onHand).toBe(40)
    const from = [await quota.line('ann', 5), await stock.line({ sku: 'coin', quantity: 2 })]
    const back = await fixture.hf.ledger.transfer(
      { from, to: [wallet.grantLine('ann', 7)] },
      across(),
    )
    expect(back.ok).toBe(true)
    expect(await available(wallet.name, 'ann')).toBe(67)
    expect((await quota.peek('ann')).used).toBe(5)
    expect((await stock.level('coin')).onHand).toBe(38)
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('is part of the transaction it is made in', async () => {
    const { wallet } = await wallets()
    const tx = await callerTransaction(fixture)
    const transfer = { from: [await wallet.line('ann', 5)], to: [wallet.grantLine('bob', 5)] }
    expect((await fixture.hf.ledger.transfer(tx, transfer, across())).ok).toBe(true)
    await tx.query('ROLLBACK')
    expect([await available(wallet.name, 'ann'), await available(wallet.name, 'bob')]).toEqual([
      100, 0,
    ])
  })

  test('is not refunded: it would be given twice', async () => {
    const { wallet } = await wallets()
    const id = across()
    await fixture.hf.ledger.transfer(
      { from: [await wallet.line('ann', 5)], to: [wallet.grantLine('bob', 5)] },
      { ...id, scope: 'ann' },
    )
    const refund = await wallet.refund('ann', 5, { ...once(), of: id.operationId, scope: 'ann' })
    expect(refund).toMatchObject({ ok: false, reason: 'not-found' })
  })

  test('that does not add up, or has no side, is not sent', async () => {
    const { wallet } = await wallets()
    const rolling = fixture.hf.quota({ name: fresh(), limit: 10, rolling: '1 h' })
    const take = await wallet.line('ann', 5)
    const give = wallet.grantLine('bob', 5)
    const wrong: readonly (readonly [readonly PreparedLine[], readonly PreparedLine[]])[] = [
      [[take], [wallet.grantLine('bob', 4)]],
      [[take], [give, give]],
      [[take], []],
      [[], [give]],
      [[give], [give]],
      [[take], [take]],
      [[await wallet.line('ann', 5, { ttl: '1 h' })], [give]],
      [[await wallet.line('ann', 5, { of: 'x' })], [give]],
      [[await rolling.line('ann', 5)], [give]],
      [[take], [wallet.grantLine('ann', 5)]],
    ]
    for (const [from, to] of wrong) {
      await expect(fixture.hf.ledger.transfer({ from, to }, across())).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
    expect(await available(wallet.name, 'ann')).toBe(100)
  })

  test('of which a leg is missing is found by an audit', async () => {
    const { wallet } = await wallets()
    await fixture.hf.ledger.transfer(
      { from: [await wallet.line('ann', 5)], to: [wallet.grantLine('bob', 5)] },
      across(),
    )
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
    const change = (amount: number): Promise<void> =>
      asSuperuser(
        fixture.observer,
        `UPDATE holdfast.operation o SET amount = ${amount} FROM holdfast.account a
         WHERE a.id = o.account AND a.book = '${wallet.name}' AND o.kind = 16`,
      )
    onTestFinished(() => change(5))
    await change(4)
    const { problems } = await fixture.hf.ledger.audit()
    expect(problems).toMatchObject([{ check: 'transfer', book: wallet.name }])
  })

  test('between many at once changes no sum, and nobody is below zero', async () => {
    const wallet = fixture.hf.credits({ name: fresh() })
    const keys = ['a', 'b', 'c', 'd', 'e']
    for (const key of keys) await wallet.grant(key, 20, once())
    const moves = Array.from({ length: 300 }, (_, n) => {
      const [one, other] = [keys[n % 5] as string, keys[(n * 7 + 1 + (n % 3)) % 5] as string]
      return {
        one,
        other: other === one ? (keys[(n + 1) % 5] as string) : other,
        amount: 1 + (n % 13),
      }
    })
    const verdicts = await Promise.all(
      moves.map(async ({ one, other, amount }) =>
        fixture.hf.ledger.transfer(
          { from: [await wallet.line(one, amount)], to: [wallet.grantLine(other, amount)] },
          across(),
        ),
      ),
    )
    expect(verdicts.filter(({ ok }) => ok).length).toBeGreaterThan(50)
    const left = await Promise.all(keys.map((key) => available(wallet.name, key)))
    expect(left.reduce((sum, one) => sum + one, 0)).toBe(100)
    expect(Math.min(...left)).toBeGreaterThanOrEqual(0)
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })
})

test('a grant is a line of an operation on several books', async () => {
  const { wallet, fees } = await wallets()
  const points = fixture.hf.credits({ name: fresh() })
  const verdict = await fixture.hf.ledger.apply(
    [
      await wallet.line('ann', 10),
      points.grantLine('ann', 3, { expiresIn: '1 h' }),
      fees.grantLine('ann', 10),
    ],
    { ...once(), scope: 'ann' },
  )
  expect(verdict.ok).toBe(true)
  expect(await available(points.name, 'ann')).toBe(3)
  const twice = [points.grantLine('ann', 1), points.grantLine('ann', 1, { priority: 1 })]
  await expect(fixture.hf.ledger.apply(twice, { ...once(), scope: 'ann' })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})

describe('as much as there is', () => {
  const upTo = (): { operationId: string; upTo: true } => ({ ...once(), upTo: true })

  test('is taken once, told again as it was, and given back no further', async () => {
    const wallet = fixture.hf.credits({ name: fresh() })
    await wallet.grant('ann', 30, once())
    const id = upTo()
    const first = await wallet.spend('ann', 50, id)
    expect(first).toMatchObject({ ok: true, replayed: false, taken: 30, available: 0 })
    expect(await wallet.spend('ann', 50, id)).toEqual({ ...first, replayed: true })
    expect(await wallet.spend('ann', 51, id)).toMatchObject({ reason: 'conflict', field: 'amount' })
    expect(await wallet.spend('ann', 1, upTo())).toMatchObject({
      ok: false,
      reason: 'insufficient',
    })
    const refund = async (amount: number): Promise<Verdict<number>> =>
      await wallet.refund('ann', amount, { ...once(), of: id.operationId })
    expect(await refund(31)).toMatchObject({ ok: false, reason: 'over-refund' })
    expect(await refund(30)).toMatchObject({ ok: true, available: 30 })
    expect(await wallet.spend('ann', 7, upTo())).toMatchObject({ ok: true, taken: 7 })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test.each([
    ['a day', { per: 'day' as const }],
    ['for ever', { per: 'lifetime' as const }],
    ['a rate', { rate: '1 h' as const }],
  ])('of a quota: %s', async (_, window) => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, ...window })
    expect(await quota.consume('k', 4, upTo())).toMatchObject({ ok: true, taken: 4 })
    const tx = await callerTransaction(fixture)
    expect(await quota.consume(tx, 'k', 100, upTo())).toMatchObject({ ok: true, taken: 6 })
    await tx.query('COMMIT')
    const refused = await quota.consume('k', 100, upTo())
    expect(refused).toMatchObject({ ok: false, reason: 'insufficient', available: 0 })
    if ('rate' in window && !refused.ok) expect(refused.retryAt).toBeInstanceOf(Date)
    if ('per' in window && window.per === 'day' && !refused.ok) {
      expect(refused.retryAt).toBeInstanceOf(Date)
    }
  })

  test('is not for rolling windows, and not for what is put aside', async () => {
    const rolling = fixture.hf.quota({ name: fresh(), limit: 10, rolling: '1 h' })
    await expect(rolling.consume('k', 1, upTo())).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('by many at once adds up to what there was', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    const verdicts = await Promise.all(
      Array.from({ length: 60 }, (_, n) => quota.consume('k', 1 + (n % 7), upTo())),
    )
    const taken = verdicts.map((verdict) => (verdict.ok ? (verdict.taken as number) : 0))
    expect(taken.reduce((sum, one) => sum + one, 0)).toBe(100)
  })
})
