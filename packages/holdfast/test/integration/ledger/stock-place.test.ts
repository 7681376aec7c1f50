/** Locations, transfers and scopes: which balance a line is about. */
import { describe, expect, test } from 'vitest'
import { stockKey, stockPlace } from '../../../src/stock/stock-key.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()

describe('locations', () => {
  test('each have a balance of their own', async () => {
    const stock = fixture.hf.stock({ name: fresh(), locations: ['shop', 'depot'] })
    const delivered = await stock.receive(
      [
        { sku: 'mug', quantity: 5, location: 'depot' },
        { sku: 'mug', quantity: 1, location: 'shop' },
      ],
      { externalId: 'd1' },
    )
    expect(delivered.lines).toMatchObject([
      { sku: 'mug', location: 'depot', onHand: 5, key: 'mug@depot' },
      { sku: 'mug', location: 'shop', onHand: 1, key: 'mug@shop' },
    ])
    const order = await stock.issue([{ sku: 'mug', quantity: 2, location: 'shop' }], {
      externalId: 'o1',
    })
    expect(order).toMatchObject({ ok: false, lines: [{ location: 'shop', missing: 1 }] })
  })

  test('need not be named where there is one', async () => {
    const one = fixture.hf.stock({ name: fresh(), locations: ['depot'] })
    const { lines } = await one.receive([{ sku: 'mug', quantity: 1 }], { externalId: 'd1' })
    expect(lines).toMatchObject([{ location: 'depot' }])
    const any = fixture.hf.stock({ name: one.name })
    const found = await any.issue([{ sku: 'mug', quantity: 1, location: 'depot' }], {
      externalId: 'o1',
    })
    expect(found).toMatchObject({ ok: true })
  })

  test('and SKUs never share a key, whatever they are called', () => {
    const names = ['a', '@', '~', 'a@b', 'a~1b', '~0', '~1', 'b@', '@b', 'ä@😀', '~01', '1']
    const places = names.flatMap((sku) =>
      [undefined, ...names].map((location) => ({ sku, location })),
    )
    const keys = places.map(({ sku, location }) => stockKey(sku, location))
    expect(new Set(keys).size).toBe(places.length)
    expect(keys.map(stockPlace)).toEqual(places)
  })
})

describe('a transfer', () => {
  test('moves all of it or nothing, once', async () => {
    const stock = fixture.hf.stock({
      name: fresh(),
      locations: ['shop', 'depot'],
      // Goods that are still to come can be sold, but not carried.
      backorder: 10,
    })
    const at = (location: 'shop' | 'depot', mug: number, tee: number): object[] => [
      { sku: 'mug', location, onHand: mug },
      { sku: 'tee', location, onHand: tee },
    ]
    const goods = [
      { sku: 'mug', quantity: 3 },
      { sku: 'tee', quantity: 2 },
    ]
    await stock.receive(
      goods.map((line) => ({ ...line, location: 'depot' as const })),
      { externalId: 'd1' },
    )
    const way = { from: 'depot', to: 'shop' } as const
    const moved = await stock.transfer(goods, { externalId: 't1', ...way, actor: 'bob' })
    expect(moved).toMatchObject({ ok: true, lines: [...at('depot', 0, 0), ...at('shop', 3, 2)] })
    const again = await stock.transfer(goods, { externalId: 't1', ...way, actor: 'bob' })
    expect(again).toMatchObject({ ok: true, replayed: true })
    const back = { from: 'shop', to: 'depot' } as const
    const tooMuch = [
      { sku: 'mug', quantity: 1 },
      { sku: 'tee', quantity: 3 },
    ]
    expect(await stock.transfer(tooMuch, { externalId: 't2', ...back })).toMatchObject({
      ok: false,
      lines: [{ missing: 0 }, { missing: 1 }, { refusal: undefined }, { refusal: undefined }],
    })
    const opposite = await stock.transfer(goods, { externalId: 't1', ...back, actor: 'bob' })
    expect(opposite).toMatchObject({ ok: false, reason: 'conflict' })
    const { rows } = await fixture.observer.query<{ note: unknown }>(
      `SELECT DISTINCT note FROM holdfast.movement WHERE operation_id = 't1'`,
    )
    expect(rows).toEqual([{ note: { actor: 'bob', transfer: way } }])
  })
})

describe('reading', () => {
  test('tells the level of a SKU, by location, and its whole history', async () => {
    const stock = fixture.hf.stock({ name: fresh(), locations: ['shop', 'depot'], backorder: 2 })
    const mugs = { sku: 'mug', quantity: 5, location: 'shop' } as const
    await stock.receive([mugs], { externalId: 'd1', source: 'delivery' })
    await stock.reserve([{ ...mugs, quantity: 2 }], { externalId: 'c1', ttl: '1 h' })
    await stock.issue([{ ...mugs, quantity: 4 }], { externalId: 'o1', actor: 'ann' })
    const levels = await stock.levels('mug')
    expect(levels).toMatchObject([
      { sku: 'mug', location: 'shop', onHand: 1, held: 2, available: 1 },
      { sku: 'mug', location: 'depot', onHand: 0, held: 0, available: 0 },
    ])
    expect(await stock.level('mug', { location: 'shop' })).toEqual(levels[0])
    const elsewhere = await stock.level('mug', { location: 'shop', scope: 'elsewhere' })
    expect(elsewhere).toMatchObject({ onHand: 0, at: undefined })
    const { movements, next } = await stock.history('mug', { location: 'shop', limit: 2 })
    expect(movements).toMatchObject([
      { kind: 'debit', debit: 4, operationId: 'o1', note: { actor: 'ann' }, available: 1 },
      { kind: 'hold', hold: 2, operationId: 'c1', note: undefined },
    ])
    const older = await stock.history('mug', { location: 'shop', before: next as string })
    expect(older).toMatchObject({
      movements: [{ kind: 'credit', credit: 5, note: { source: 'delivery' } }],
      next: undefined,
    })
    const plain = fixture.hf.stock({ name: fresh(), amounts: 'bigint' })
    await plain.receive([{ sku: 'mug', quantity: 1 }], { externalId: 'd1' })
    expect(await plain.levels('mug')).toMatchObject([{ location: undefined, onHand: 1n }])
    await expect(stock.level('mug')).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('in a transaction sees what the transaction did', async () => {
    const stock = fixture.hf.stock({ name: fresh(), locations: ['shop'] })
    await fixture.hf.transaction(async (tx) => {
      await stock.receive(tx, [{ sku: 'mug', quantity: 5 }], { externalId: 'd1' })
      expect(await stock.level(tx, 'mug')).toMatchObject({ onHand: 5 })
      expect(await stock.levels(tx, 'mug')).toMatchObject([{ onHand: 5 }])
      expect((await stock.history(tx, 'mug')).movements).toHaveLength(1)
    })
  })

  test('starts with what another table counted', async () => {
    const stock = fixture.hf.stock({ name: fresh(), locations: ['shop', 'depot'] })
    const table = [
      { sku: 'mug', quantity: 5, location: 'shop' },
      { sku: 'mug', quantity: 0, location: 'depot' },
      { sku: 'tee', quantity: -1, location: 'shop' },
    ] as const
    const first = await stock.open(table, { operationId: 'import' })
    expect(first).toMatchObject({ opened: 1, empty: 1, refused: 1 })
    expect(first.refusals).toEqual([{ key: 'tee@shop', reason: 'insufficient' }])
    expect(await stock.open(table, { operationId: 'import' })).toMatchObject({ replayed: 1 })
    const order = [{ sku: 'mug', quantity: 6, location: 'shop' as const }]
    expect(await stock.issue(order, { externalId: 'o1' })).toMatchObject({ ok: false })
    const { rows } = await fixture.observer.query(
      `SELECT DISTINCT b.walled FROM holdfast.balance b
       JOIN holdfast.account a ON a.bucket = b.bucket AND a.id = b.account WHERE a.book = $1`,
      [stock.name],
    )
    expect(rows).toEqual([{ walled: true }])
  })
})

describe('scopes', () => {
  test('separate balances and ids; lines of one order span them only knowingly', async () => {
    const stock = fixture.hf.stock({ name: fresh(), scope: 'chile' })
    const mugs = [{ sku: 'mug', quantity: 2 }]
    expect(await stock.receive(mugs, { externalId: 'x' })).toMatchObject({ replayed: false })
    const peru = await stock.receive(mugs, { externalId: 'x', scope: 'peru' })
    expect(peru).toMatchObject({ replayed: false, available: 2 })
    const both = [
      { sku: 'mug', quantity: 1 },
      { sku: 'mug', quantity: 2, scope: 'peru' },
    ]
    await expect(stock.issue(both, { externalId: 'o1' })).rejects.toMatchObject({
      code: 'LEDGER_SCOPES',
    })
    const knowingly = { externalId: 'o1', acrossScopes: true }
    expect(await stock.issue(both, knowingly)).toMatchObject({
      ok: true,
      lines: [
        { quantity: 1, available: 1 },
        { quantity: 2, available: 0 },
      ],
    })
    expect(await stock.issue(both, knowingly)).toMatchObject({ ok: true, replayed: true })
    const cart = { ...knowingly, externalId: 'c1', ttl: '1 h' } as const
    await expect(stock.reserve(both, cart)).rejects.toMatchObject({ code: 'LEDGER_SCOPES' })
  })

  test('a line can be one of an operation over several books', async () => {
    const stock = fixture.hf.stock({ name: fresh(), scope: 'chile' })
    await stock.receive([{ sku: 'mug', quantity: 2 }], { externalId: 'd1' })
    const perDay = fixture.hf.quota({ name: fresh(), limit: 1, per: 'day' })
    const buy = async (operationId: string): ReturnType<typeof fixture.hf.ledger.apply> =>
      fixture.hf.ledger.apply(
        [
          await stock.line({ sku: 'mug', quantity: 1 }),
          await perDay.line('ann', 1, { scope: 'chile' }),
        ],
        { operationId, scope: 'chile' },
      )
    expect(await buy('b1')).toMatchObject({ ok: true })
    expect(await buy('b2')).toMatchObject({ ok: false, book: perDay.name })
    const left = await stock.issue([{ sku: 'mug', quantity: 2 }], { externalId: 'o1' })
    expect(left).toMatchObject({ ok: false, lines: [{ onHand: 1 }] })
  })
})
