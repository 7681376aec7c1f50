/** Balances that existed before, and corrections: both are movements like any other. */
import { describe, expect, test } from 'vitest'
import type { Opened } from '../../../src/ledger/upkeep/opening.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })

describe('opening balances', () => {
  test('become movements, once, however often the import is run', async () => {
    const book = fresh()
    const rows = Array.from({ length: 1_234 }, (_, at) => ({ key: at, balance: at - 10 }))
    async function* source(upTo: number): AsyncGenerator<(typeof rows)[number]> {
      for (const row of rows.slice(0, upTo)) yield row
    }
    const progress: Opened[] = []
    const half = await fixture.hf.ledger.open(book, source(700), {
      operationId: 'import-1',
      batch: 100,
      onProgress: (done) => progress.push(done),
    })
    expect(half).toMatchObject({ rows: 700, opened: 699, replayed: 0, empty: 1, refused: 0 })
    expect(progress.map((done) => done.rows)).toEqual([100, 200, 300, 400, 500, 600, 700])

    // It stopped there. The second run does the rest.
    const whole = await fixture.hf.ledger.open(book, rows, { operationId: 'import-1' })
    expect(whole).toMatchObject({ rows: 1_234, opened: 534, replayed: 699, empty: 1, refused: 0 })
    for (const { key, balance } of [rows[0], rows[10], rows[1_233]] as typeof rows) {
      expect(await fixture.hf.ledger.balance(book, key)).toMatchObject({ available: balance })
    }
    const { movements } = await fixture.hf.ledger.history(book, 1_233)
    expect(movements).toMatchObject([{ kind: 'opening', credit: 1_223, sequence: 1 }])
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('that differ from an earlier run are named, and the others are booked', async () => {
    const book = fresh()
    await fixture.hf.ledger.open(book, [{ key: 'a', balance: 5 }], { operationId: 'i' })
    const again = await fixture.hf.ledger.open(
      book,
      [
        { key: 'a', balance: 6 },
        { key: 'b', balance: 2 },
      ],
      { operationId: 'i' },
    )
    expect(again).toMatchObject({
      opened: 1,
      refused: 1,
      refusals: [{ key: 'a', reason: 'conflict' }],
    })
    expect(await fixture.hf.ledger.balance(book, 'a')).toMatchObject({ available: 5 })
  })

  test('of many keys in one scope, with long names, stay apart', async () => {
    const book = fresh()
    const scope = 's'.repeat(512)
    const rows = ['x', 'y'].map((end) => ({ key: 'k'.repeat(511) + end, balance: 3, scope }))
    expect(
      await fixture.hf.ledger.open(book, rows, { operationId: 'o'.repeat(512) }),
    ).toMatchObject({ opened: 2 })
  })

  test('of a stock cannot be below zero, and stay behind the wall', async () => {
    const book = fresh()
    const opened = await fixture.hf.ledger.open(
      book,
      [
        { key: 'mug', balance: 5 },
        { key: 'tee', balance: -1 },
      ],
      { operationId: 'i', walled: true },
    )
    expect(opened).toMatchObject({ opened: 1, refusals: [{ key: 'tee', reason: 'insufficient' }] })
    expect(
      await fixture.hf.ledger.adjust(book, 'mug', -6, { ...operation(), reason: 'lost' }),
    ).toMatchObject({ ok: false, reason: 'insufficient' })
  })

  test('of a quota are what was used in this window, also above the limit', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'month' })
    const opened = await quota.open(
      [
        { key: 'a', used: 4 },
        { key: 'b', used: 12 },
        { key: 'c', used: 0 },
      ],
      { operationId: 'import' },
    )
    expect(opened).toMatchObject({ opened: 2, empty: 1 })
    expect(await quota.peek('a')).toMatchObject({ used: 4, available: 6 })
    expect(await quota.peek('b')).toMatchObject({ used: 12, available: -2 })
    expect(await quota.consume('b', 1, operation())).toMatchObject({ ok: false })
    expect(await quota.consume('a', 6, operation())).toMatchObject({ ok: true })
    expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0 })
  })

  test('of what cannot have any are refused', async () => {
    const rolling = fixture.hf.quota({ name: fresh(), limit: 10, rolling: '1 h' })
    const rate = fixture.hf.quota({ name: fresh(), limit: 10, rate: '1 h' })
    for (const quota of [rolling, rate]) {
      await expect(quota.open([], { operationId: 'i' })).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
    await expect(
      fixture.hf.ledger.open('b', [{ key: 'a', balance: 1.5 }], { operationId: 'i' }),
    ).rejects.toMatchObject({ code: 'LEDGER_AMOUNT_INVALID' })
    await expect(
      fixture.hf.ledger.open('b', [], { operationId: 'i', batch: 0 }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('adjust', () => {
  test('gives or takes whatever the balance, and says why', async () => {
    const book = fresh()
    const key = fresh()
    const once = { ...operation(), reason: 'counted by hand' }
    expect(await fixture.hf.ledger.adjust(book, key, 7, once)).toMatchObject({ available: 7n })
    expect(await fixture.hf.ledger.adjust(book, key, 7, once)).toMatchObject({ replayed: true })
    expect(
      await fixture.hf.ledger.adjust(book, key, -9n, { ...operation(), reason: 'again' }),
    ).toMatchObject({ ok: true, available: -2n })
    const { movements } = await fixture.hf.ledger.history(book, key)
    expect(movements.map(({ kind, note }) => [kind, note])).toEqual([
      ['adjust', { reason: 'again' }],
      ['adjust', { reason: 'counted by hand' }],
    ])
  })

  test('without a reason, or past the window of a quota, is refused', async () => {
    const book = fresh()
    await expect(
      fixture.hf.ledger.adjust(book, 'k', 1, { ...operation(), reason: ' ' }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const quota = fixture.hf.quota({ name: book, limit: 10, per: 'day' })
    await quota.consume('k', 10, operation())
    await expect(
      fixture.hf.ledger.adjust(book, 'k', 1, { ...operation(), reason: 'goodwill' }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await quota.adjust('k', 2, { ...operation(), reason: 'goodwill' })).toMatchObject({
      available: 2,
    })
    expect(await quota.consume('k', 2, operation())).toMatchObject({ ok: true, available: 0 })
    const rolling = fixture.hf.quota({ name: fresh(), limit: 10, rolling: '1 h' })
    await expect(
      rolling.adjust('k', 1, { ...operation(), reason: 'goodwill' }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})
