/** What stock answers: shortages by line, returns within what was sold, places, words, hostile input. */
import { waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Stock } from '../../../src/stock/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()

/** A stock of its own with so many of some SKUs. */
async function stockWith(
  quantities: Readonly<Record<string, number>>,
  options: { readonly backorder?: number; readonly stickyFor?: false } = {},
): Promise<Stock<pg.PoolClient, number>> {
  const stock = fixture.hf.stock({ name: fresh(), ...options })
  const lines = Object.entries(quantities).map(([sku, quantity]) => ({ sku, quantity }))
  expect(await stock.receive(lines, { externalId: 'delivery' })).toMatchObject({ ok: true })
  return stock
}

/** What there is: found out by one more piece that arrives. */
async function levelOf(
  stock: Stock<pg.PoolClient, number>,
  sku: string,
): Promise<readonly [onHand: number, held: number, available: number]> {
  const verdict = await stock.receive([{ sku, quantity: 1 }], { externalId: fresh() })
  const [line] = verdict.lines
  if (line === undefined) throw new Error('no line')
  return [line.onHand - 1, line.held, line.available - 1]
}

describe('an order', () => {
  test('takes all its lines or none, and says of each how much is missing', async () => {
    const stock = await stockWith({ mug: 5, tee: 1, cap: 2 })
    const order = [
      { sku: 'mug', quantity: 2 },
      { sku: 'tee', quantity: 4 },
      { sku: 'cap', quantity: 3 },
    ]
    const refused = await stock.issue(order, { externalId: 'o1' })
    expect(refused).toMatchObject({ ok: false, reason: 'insufficient', key: 'tee' })
    expect(refused.lines).toMatchObject([
      { sku: 'mug', quantity: 2, available: 5, missing: 0, refusal: undefined },
      { sku: 'tee', quantity: 4, available: 1, missing: 3, refusal: 'insufficient' },
      { sku: 'cap', quantity: 3, available: 2, missing: 1, refusal: 'insufficient' },
    ])
    expect(await levelOf(stock, 'mug')).toEqual([5, 0, 5])
    const fits = await stock.issue([{ sku: 'mug', quantity: 5 }], { externalId: 'o2' })
    expect(fits).toMatchObject({ ok: true, lines: [{ onHand: 1, available: 1, missing: 0 }] })
  })

  test('may name a SKU twice: the sum counts', async () => {
    const stock = await stockWith({ mug: 3 })
    const twice = [
      { sku: 'mug', quantity: 2 },
      { sku: 'mug', quantity: 2 },
    ]
    const refused = await stock.issue(twice, { externalId: 'o1' })
    expect(refused).toMatchObject({ ok: false, lines: [{ quantity: 4, missing: 1 }] })
    // Control: each line alone would fit.
    expect(await stock.issue(twice.slice(1), { externalId: 'o2' })).toMatchObject({ ok: true })
  })

  test('of what was never there is refused', async () => {
    const stock = fixture.hf.stock({ name: fresh() })
    const verdict = await stock.issue([{ sku: 'ghost', quantity: 1 }], { externalId: 'o1' })
    expect(verdict).toMatchObject({ ok: false, lines: [{ available: 0, missing: 1 }] })
  })

  test('with the same id is one order, and with other lines a conflict', async () => {
    const stock = await stockWith({ mug: 5, tee: 5, cap: 5 })
    const order = [
      { sku: 'mug', quantity: 2 },
      { sku: 'tee', quantity: 1 },
      { sku: 'cap', quantity: 1 },
    ]
    const words = { source: 'marketplace', reference: { type: 'order', id: '17' } }
    const first = await stock.issue(order, { externalId: 'w1', ...words })
    expect(first).toMatchObject({ ok: true, replayed: false })
    const again = await stock.issue(order.toReversed(), { externalId: 'w1', ...words })
    expect(again).toMatchObject({ ok: true, replayed: true })
    expect(new Set(again.lines)).toEqual(new Set(first.lines))
    const conflict = async (
      lines: typeof order,
      rest: object = words,
    ): Promise<string | undefined> => {
      const verdict = await stock.issue(lines, { externalId: 'w1', ...rest })
      return verdict.ok ? 'accepted' : verdict.field
    }
    expect(await conflict([{ sku: 'mug', quantity: 3 }, ...order.slice(1)])).toBe('amount')
    expect(await conflict([...order, { sku: 'pin', quantity: 1 }])).toBe('lines')
    expect(await conflict(order.slice(1))).toBe('lines')
    expect(await conflict(order, { ...words, source: 'web' })).toBe('note')
    const received = await stock.receive(order, { externalId: 'w1', ...words })
    expect(received).toMatchObject({ ok: false, reason: 'conflict', field: 'kind' })
    expect(await levelOf(stock, 'mug')).toEqual([3, 0, 3])
  })

  test('leaves its words in the movement', async () => {
    const stock = await stockWith({ mug: 5 })
    const note = {
      source: 'ML_SALE',
      reference: { type: 'ORDER', id: '4711' },
      actor: 'importer',
      reason: 'sale',
    }
    await stock.issue([{ sku: 'mug', quantity: 1 }], {
      externalId: 'w"1"',
      ...note,
      note: { channel: 'ünï', source: 'hidden' },
    })
    const { rows } = await fixture.observer.query<{ note: unknown; operation_id: string }>(
      `SELECT m.note, m.operation_id FROM holdfast.movement m
       JOIN holdfast.account a ON a.bucket = m.bucket AND a.id = m.account
       WHERE a.book = $1 AND m.kind = 2`,
      [stock.name],
    )
    expect(rows).toEqual([{ operation_id: 'w"1"', note: { ...note, channel: 'ünï' } }])
  })
})

describe('a refused order', () => {
  test('stays refused after a delivery, until its time is over', async () => {
    const stock = fixture.hf.stock({ name: fresh(), stickyFor: '300 ms' })
    const order = [
      { sku: 'mug', quantity: 2 },
      { sku: 'tee', quantity: 1 },
    ]
    const refused = await stock.issue(order, { externalId: 'o1' })
    expect(refused).toMatchObject({ ok: false, replayed: false })
    await stock.receive(
      order.map((line) => ({ ...line, quantity: 10 })),
      { externalId: 'd1' },
    )
    const again = await stock.issue(order, { externalId: 'o1' })
    expect(again).toMatchObject({ ok: false, reason: 'insufficient', replayed: true })
    expect(again.lines).toMatchObject([
      { sku: 'mug', missing: 2 },
      { sku: 'tee', missing: 1 },
    ])
    // Another id is another order.
    expect(await stock.issue(order, { externalId: 'o2' })).toMatchObject({ ok: true })
    const accepted = await waitUntil('the refusal is forgotten', async () => {
      const verdict = await stock.issue(order, { externalId: 'o1' })
      return verdict.ok ? verdict : undefined
    })
    expect(accepted.replayed).toBe(false)
    expect(await stock.issue(order, { externalId: 'o1' })).toMatchObject({ replayed: true })
    expect(await levelOf(stock, 'mug')).toEqual([6, 0, 6])
  })

  test('of a single line that the first look already refuses stays refused as well', async () => {
    const stock = await stockWith({ mug: 1 })
    const order = [{ sku: 'mug', quantity: 2 }]
    expect(await stock.issue(order, { externalId: 'o1' })).toMatchObject({ ok: false })
    await stock.receive(order, { externalId: 'd1' })
    expect(await stock.issue(order, { externalId: 'o1' })).toMatchObject({
      ok: false,
      replayed: true,
      lines: [{ available: 1, missing: 1 }],
    })
  })

  test('may be another order once it is forgotten', async () => {
    const stock = fixture.hf.stock({ name: fresh(), stickyFor: '100 ms' })
    const two = [
      { sku: 'mug', quantity: 2 },
      { sku: 'tee', quantity: 1 },
    ]
    expect(await stock.issue(two, { externalId: 'o1' })).toMatchObject({ ok: false })
    await stock.receive(two, { externalId: 'd1' })
    const other = [{ sku: 'tee', quantity: 1 }]
    const conflict = await stock.issue(other, { externalId: 'o1' })
    expect(conflict).toMatchObject({ ok: false, reason: 'conflict' })
    await waitUntil('the refusal is forgotten', async () => {
      return (await stock.issue(other, { externalId: 'o1' })).ok || undefined
    })
    expect(await stock.issue(other, { externalId: 'o1' })).toMatchObject({
      ok: true,
      replayed: true,
    })
    expect(await levelOf(stock, 'mug')).toEqual([2, 0, 2])
  })

  test('is judged anew where that is turned off', async () => {
    const stock = await stockWith({ mug: 1 }, { stickyFor: false })
    const order = [{ sku: 'mug', quantity: 2 }]
    expect(await stock.issue(order, { externalId: 'o1' })).toMatchObject({ ok: false })
    await stock.receive(order, { externalId: 'd1' })
    expect(await stock.issue(order, { externalId: 'o1' })).toMatchObject({ ok: true })
  })
})

describe('a return', () => {
  test('of a sale is bounded by what is left of it, over any number of returns', async () => {
    const stock = await stockWith({ mug: 5, tee: 5 })
    const sale = [
      { sku: 'mug', quantity: 3 },
      { sku: 'tee', quantity: 1 },
    ]
    await stock.issue(sale, { externalId: 'sale' })
    const back = async (quantity: number, externalId: string, sku = 'mug'): Promise<unknown> => {
      const verdict = await stock.return([{ sku, quantity }], { externalId, of: 'sale' })
      return verdict.ok ? verdict.available : verdict.reason
    }
    expect(await back(4, 'r0')).toBe('over-refund')
    expect(await back(2, 'r1')).toBe(4)
    expect(await back(2, 'r1')).toBe(4)
    expect(await back(2, 'r2')).toBe('over-refund')
    expect(await back(1, 'r3')).toBe(5)
    expect(await back(1, 'r4')).toBe('over-refund')
    expect(await back(1, 'r5', 'cap')).toBe('not-found')
    const both = await stock.return(
      [
        { sku: 'tee', quantity: 1 },
        { sku: 'mug', quantity: 1 },
      ],
      { externalId: 'r6', of: 'sale' },
    )
    expect(both).toMatchObject({ ok: false, reason: 'over-refund', key: 'mug' })
    expect(await levelOf(stock, 'tee')).toEqual([4, 0, 4])
    const ofNothing = await stock.return(sale, { externalId: 'r7', of: 'no such sale' })
    expect(ofNothing).toMatchObject({ ok: false, reason: 'not-found' })
    // Control: a return that names no sale has no bound.
    const unbound = await stock.return([{ sku: 'mug', quantity: 4 }], { externalId: 'r8' })
    expect(unbound).toMatchObject({ ok: true, available: 9 })
  })
})

describe('an adjustment', () => {
  test('goes both ways, needs a reason, and cannot take what is not there', async () => {
    const stock = await stockWith({ mug: 5, tee: 5 })
    const counted = await stock.adjust(
      [
        { sku: 'mug', quantity: -3 },
        { sku: 'tee', quantity: 2 },
      ],
      { externalId: 'count', reason: 'stocktaking', actor: 'ann' },
    )
    expect(counted).toMatchObject({
      ok: true,
      lines: [
        { sku: 'mug', quantity: -3, onHand: 2 },
        { sku: 'tee', quantity: 2, onHand: 7 },
      ],
    })
    const refused = await stock.adjust([{ sku: 'mug', quantity: -3 }], {
      externalId: 'thief',
      reason: 'theft',
    })
    expect(refused).toMatchObject({ ok: false, lines: [{ quantity: -3, missing: 1 }] })
    const adjust = (lines: { sku: string; quantity: number }[], reason: string): unknown =>
      stock.adjust(lines, { externalId: fresh(), reason })
    await expect(adjust([{ sku: 'mug', quantity: 1 }], ' ')).rejects.toThrow(/needs a reason/)
    const nothing = [
      { sku: 'mug', quantity: 2 },
      { sku: 'mug', quantity: -2 },
    ]
    await expect(adjust(nothing, 'why')).rejects.toMatchObject({ code: 'LEDGER_AMOUNT_INVALID' })
    await expect(adjust([{ sku: 'mug', quantity: 0 }], 'why')).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_INVALID',
    })
  })
})

describe('backorder', () => {
  test('lets a SKU be sold ahead, so far and no further', async () => {
    const stock = fixture.hf.stock({
      name: fresh(),
      backorder: async (sku) => (sku === 'mug' ? 3 : 0),
    })
    const issue = (sku: string, quantity: number): ReturnType<typeof stock.issue> =>
      stock.issue([{ sku, quantity }], { externalId: fresh() })
    expect(await issue('mug', 2)).toMatchObject({ ok: true, lines: [{ onHand: -2, available: 1 }] })
    expect(await issue('mug', 2)).toMatchObject({ ok: false, lines: [{ missing: 1 }] })
    expect(await issue('tee', 1)).toMatchObject({ ok: false, lines: [{ missing: 1 }] })
    // No backorder any more: what was sold ahead stays sold, and nothing more is.
    const strict = fixture.hf.stock({ name: stock.name })
    const one = [{ sku: 'mug', quantity: 1 }]
    expect(await strict.issue(one, { externalId: fresh() })).toMatchObject({ ok: false })
    expect(await strict.receive(one, { externalId: fresh() })).toMatchObject({ ok: true })
    expect(await strict.issue(one, { externalId: fresh() })).toMatchObject({ ok: false })
    const three = [{ sku: 'mug', quantity: 3 }]
    expect(await strict.receive(three, { externalId: fresh() })).toMatchObject({
      lines: [{ onHand: 2 }],
    })
    expect(await strict.issue(one, { externalId: fresh() })).toMatchObject({ ok: true })
    expect(await strict.issue(three, { externalId: fresh() })).toMatchObject({ ok: false })
  })
})

describe('bigint amounts', () => {
  test('stay exact beyond what a number can hold', async () => {
    const stock = fixture.hf.stock({ name: fresh(), amounts: 'bigint' })
    const many = 2n ** 60n + 1n
    await stock.receive([{ sku: 'grain', quantity: many }], { externalId: 'd1' })
    const verdict = await stock.issue([{ sku: 'grain', quantity: many + 1n }], { externalId: 'o1' })
    expect(verdict.lines).toMatchObject([{ quantity: many + 1n, onHand: many, missing: 1n }])
    const tooMuch = Array.from({ length: 4 }, () => ({ sku: 'grain', quantity: 2n ** 61n }))
    await expect(stock.receive(tooMuch, { externalId: 'd2' })).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_INVALID',
    })
  })
})

describe('what cannot be meant is refused before it is sent', () => {
  const stock = (): Stock<pg.PoolClient, number, 'a' | 'b'> =>
    fixture.hf.stock({ name: 'hostile', locations: ['a', 'b'] })
  const line = { sku: 'mug', quantity: 1, location: 'a' } as const

  test.each([
    ['no lines', [], { externalId: 'x' }, 'OPTION_INVALID'],
    ['no list', line, { externalId: 'x' }, 'OPTION_INVALID'],
    ['no id', [line], {}, 'LEDGER_NAME_INVALID'],
    ['no options', [line], undefined, 'LEDGER_NAME_INVALID'],
    ['an empty SKU', [{ ...line, sku: '' }], { externalId: 'x' }, 'LEDGER_NAME_INVALID'],
    ['NUL in a SKU', [{ ...line, sku: 'a\0b' }], { externalId: 'x' }, 'LEDGER_NAME_INVALID'],
    [
      'an endless SKU',
      [{ ...line, sku: 'a'.repeat(511) }],
      { externalId: 'x' },
      'LEDGER_NAME_INVALID',
    ],
    ['an unknown location', [{ ...line, location: 'A' }], { externalId: 'x' }, 'OPTION_INVALID'],
    ['no location', [{ sku: 'mug', quantity: 1 }], { externalId: 'x' }, 'OPTION_INVALID'],
    ['nothing', [{ ...line, quantity: 0 }], { externalId: 'x' }, 'LEDGER_AMOUNT_INVALID'],
    [
      'less than nothing',
      [{ ...line, quantity: -1 }],
      { externalId: 'x' },
      'LEDGER_AMOUNT_INVALID',
    ],
    ['half', [{ ...line, quantity: 0.5 }], { externalId: 'x' }, 'LEDGER_AMOUNT_INVALID'],
    ['NaN', [{ ...line, quantity: Number.NaN }], { externalId: 'x' }, 'LEDGER_AMOUNT_INVALID'],
    ['2^63', [{ ...line, quantity: 2n ** 63n }], { externalId: 'x' }, 'LEDGER_AMOUNT_INVALID'],
    ['NUL in a word', [line], { externalId: 'x', actor: '\0' }, 'LEDGER_NAME_INVALID'],
    ['two scopes', [line, { ...line, scope: 'b' }], { externalId: 'x' }, 'LEDGER_SCOPES'],
  ])('%s', async (_, lines, options, code) => {
    await expect(stock().issue(lines as never, options as never)).rejects.toMatchObject({ code })
  })

  test('a word that only looks like NUL is kept', async () => {
    const words = { externalId: fresh(), actor: '\\u0000' }
    expect(await stock().receive([line], words)).toMatchObject({ ok: true })
  })

  test('a transfer to where the goods are, a hold that is none, a part without lines', async () => {
    const to = { externalId: 'x', from: 'a', to: 'a' } as const
    await expect(stock().transfer([line], to)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(stock().settle('nope')).rejects.toMatchObject({ code: 'LEDGER_NAME_INVALID' })
    const holdId = '000-00000000-0000-0000-0000-000000000000'
    await expect(stock().release(holdId, { lines: [] })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    expect(await stock().release(holdId)).toMatchObject({ ok: false, reason: 'not-found' })
  })
})
