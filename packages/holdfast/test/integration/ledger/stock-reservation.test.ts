/** Carts: goods put aside, settled or released in whole or in part, and given back by time. */
import { waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Stock } from '../../../src/stock/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()

const cart = [
  { sku: 'mug', quantity: 2 },
  { sku: 'tee', quantity: 3 },
]

/** A stock of its own with five of each, and a cart in it. */
async function stockWithCart(
  ttl: `${number} ms` | '1 h' = '1 h',
  policy: { readonly late?: 'refuse'; readonly overrun?: 'available' | 'cap' } = {},
): Promise<{ stock: Stock<pg.PoolClient, number>; holdId: string }> {
  const stock = fixture.hf.stock({ name: fresh(), ...policy })
  await stock.receive(
    cart.map(({ sku }) => ({ sku, quantity: 5 })),
    { externalId: 'delivery' },
  )
  const reserved = await stock.reserve(cart, { externalId: 'cart', ttl })
  if (!reserved.ok) throw new Error('the cart was refused')
  expect(reserved.lines).toMatchObject([
    { sku: 'mug', onHand: 5, held: 2, available: 3 },
    { sku: 'tee', onHand: 5, held: 3, available: 2 },
  ])
  return { stock, holdId: reserved.holdId as string }
}

/** On hand and available of mug and tee, by one more piece of each that arrives. */
async function levels(stock: Stock<pg.PoolClient, number>): Promise<number[][]> {
  const one = cart.map(({ sku }) => ({ sku, quantity: 1 }))
  const { lines } = await stock.receive(one, { externalId: fresh() })
  return lines.map(({ onHand, available }) => [onHand - 1, available - 1])
}

describe('a reservation', () => {
  test('is not for sale to others, and leaves when it is settled', async () => {
    const { stock, holdId } = await stockWithCart()
    const other = await stock.issue([{ sku: 'tee', quantity: 3 }], { externalId: 'o1' })
    expect(other).toMatchObject({ ok: false, lines: [{ onHand: 5, available: 2, missing: 1 }] })
    const again = await stock.reserve(cart, { externalId: 'cart', ttl: '1 h' })
    expect(again).toMatchObject({ ok: true, replayed: true, holdId })
    const words = { source: 'checkout', reference: { type: 'payment', id: 'p1' } }
    expect(await stock.settle(holdId, words)).toMatchObject({ ok: true, replayed: false })
    expect(await stock.settle(holdId)).toMatchObject({ ok: true, replayed: true })
    expect(await stock.release(holdId)).toMatchObject({ ok: false, state: 'settled' })
    expect(await levels(stock)).toEqual([
      [3, 3],
      [2, 2],
    ])
    const { rows } = await fixture.observer.query<{ note: unknown; operation_id: string }>(
      'SELECT DISTINCT note, operation_id FROM holdfast.movement WHERE kind = 4 AND hold_id = $1',
      [holdId.slice(4)],
    )
    expect(rows).toEqual([{ note: words, operation_id: 'cart' }])
    // A return may name the cart.
    const back = { externalId: 'r1', of: 'cart' }
    expect(await stock.return([{ sku: 'mug', quantity: 3 }], back)).toMatchObject({
      reason: 'over-refund',
    })
    expect(await stock.return([{ sku: 'mug', quantity: 2 }], back)).toMatchObject({ ok: true })
  })

  test('is for sale again when it is released', async () => {
    const { stock, holdId } = await stockWithCart()
    const released = await stock.release(holdId, { actor: 'customer', reason: 'cart emptied' })
    expect(released).toMatchObject({ ok: true })
    expect(await stock.release(holdId)).toMatchObject({ ok: true, replayed: true })
    expect(await stock.settle(holdId)).toMatchObject({ ok: false, state: 'released' })
    expect(await levels(stock)).toEqual([
      [5, 5],
      [5, 5],
    ])
  })

  test('comes back by itself when its time is over', async () => {
    const { stock } = await stockWithCart('50 ms')
    const all = cart.map(({ sku }) => ({ sku, quantity: 5 }))
    const sold = await waitUntil('all of it can be sold', async () => {
      const verdict = await stock.issue(all, { externalId: fresh() })
      return verdict.ok ? verdict : undefined
    })
    expect(sold.lines).toMatchObject([{ onHand: 0 }, { onHand: 0 }])
  })

  test('lives longer if it is extended', async () => {
    const { stock, holdId } = await stockWithCart('200 ms')
    expect(await stock.extend(holdId, '1 h')).toMatchObject({ ok: true })
    const short = await stock.reserve([{ sku: 'mug', quantity: 3 }], {
      externalId: 'other',
      ttl: '300 ms',
    })
    // The later and shorter one is over: so is the time that the cart had first.
    await waitUntil('the other reservation is over', async () => {
      const verdict = await stock.extend((short.ok && short.holdId) as string, 1)
      return !verdict.ok || undefined
    })
    expect(await levels(stock)).toEqual([
      [5, 3],
      [5, 2],
    ])
  })

  test('that is short is refused by line, and stays refused while it would have lived', async () => {
    const { stock } = await stockWithCart()
    const more = [
      { sku: 'mug', quantity: 1 },
      { sku: 'tee', quantity: 5 },
    ]
    const refused = await stock.reserve(more, { externalId: 'c2', ttl: '1 h' })
    expect(refused).toMatchObject({ ok: false, lines: [{ missing: 0 }, { missing: 3 }] })
    await stock.receive([{ sku: 'tee', quantity: 9 }], { externalId: 'd2' })
    const again = await stock.reserve(more, { externalId: 'c2', ttl: '1 h' })
    expect(again).toMatchObject({ ok: false, replayed: true })
  })
})

describe('a part of a reservation', () => {
  test('can be settled, released and extended alone', async () => {
    const { stock, holdId } = await stockWithCart()
    const mug = { lines: [{ sku: 'mug', quantity: 1 }] }
    expect(await stock.settle(holdId, mug)).toMatchObject({ ok: true })
    expect(await stock.settle(holdId, mug)).toMatchObject({ ok: true, replayed: true })
    // One of the two mugs left, the other is free again; the tees are still put aside.
    expect(await levels(stock)).toEqual([
      [4, 4],
      [5, 2],
    ])
    const tee = { lines: [{ sku: 'tee' }] }
    expect(await stock.extend(holdId, '2 h', tee)).toMatchObject({ ok: true })
    expect(await stock.release(holdId, tee)).toMatchObject({ ok: true })
    expect((await levels(stock))[1]).toEqual([6, 6])
    const cap = { lines: [{ sku: 'cap' }] }
    expect(await stock.release(holdId, cap)).toMatchObject({ ok: false, reason: 'not-found' })
  })

  test('is settled with the others or not at all', async () => {
    const { stock, holdId } = await stockWithCart()
    const tooMany = {
      lines: [
        { sku: 'mug', quantity: 2 },
        { sku: 'tee', quantity: 4 },
      ],
    }
    expect(await stock.settle(holdId, tooMany)).toMatchObject({
      ok: false,
      reason: 'insufficient',
      key: 'tee',
    })
    expect(await levels(stock)).toEqual([
      [5, 3],
      [5, 2],
    ])
    expect(await stock.settle(holdId)).toMatchObject({ ok: true })
  })
})

describe('what was not foreseen', () => {
  const allGone = async (stock: Stock<pg.PoolClient, number>): Promise<void> => {
    await waitUntil('others have bought it all', async () => {
      const all = cart.map(({ sku }) => ({ sku, quantity: 5 }))
      return (await stock.issue(all, { externalId: fresh() })).ok || undefined
    })
  }

  test('a late settlement takes what is still there', async () => {
    const { stock, holdId } = await stockWithCart('20 ms')
    await waitUntil('the cart expired', async () => {
      const [mug] = await levels(stock)
      return mug?.[0] === mug?.[1] || undefined
    })
    const [before] = await levels(stock)
    expect(await stock.settle(holdId)).toMatchObject({ ok: true })
    expect(await stock.settle(holdId)).toMatchObject({ ok: true, replayed: true })
    const [after] = await levels(stock)
    expect((before?.[1] ?? 0) + 1 - (after?.[1] ?? 0)).toBe(2)
  })

  test('a late settlement of what others have bought is refused', async () => {
    const { stock, holdId } = await stockWithCart('20 ms')
    await allGone(stock)
    expect(await stock.settle(holdId)).toMatchObject({ ok: false, state: 'expired' })
    expect(await levels(stock)).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  test('and wherever the policy says so', async () => {
    const { stock, holdId } = await stockWithCart('20 ms', { late: 'refuse' })
    const settled = await waitUntil('the cart expired', async () => {
      const [mug] = await levels(stock)
      return mug?.[0] === mug?.[1] ? stock.settle(holdId) : undefined
    })
    expect(settled).toMatchObject({ ok: false, state: 'expired' })
  })

  test.each([
    ['available', 4, true, 1],
    ['available', 6, false, 3],
    ['cap', 6, true, 3],
  ] as const)('a settlement above the cart: %s, %i', async (overrun, quantity, ok, left) => {
    const { stock, holdId } = await stockWithCart('1 h', { overrun })
    const verdict = await stock.settle(holdId, { lines: [{ sku: 'mug', quantity }] })
    expect(verdict).toMatchObject({ ok })
    expect((await levels(stock))[0]?.[1]).toBe(left)
  })
})
