import { afterEach, describe, expect, test } from 'vitest'
import type { Credits } from '../../../src/credits/index.ts'
import type pg from 'pg'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'
import { creditsRoom } from './credits-room.ts'

const fixture = ledgerFixture()
const room = creditsRoom(fixture, 'credits')
const open = (): Credits<pg.PoolClient, number> => fixture.hf.credits({ name: 'credits' })
const later = (days: number): Date => new Date(Date.UTC(2100, 0, 1 + days))

afterEach(() => room.assertAddsUp())

describe('burn order', () => {
  test('lower priority first, then earlier expiry, then earlier arrival', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'never' })
    await credits.grant(key, 10, { operationId: 'late', expiresAt: later(9) })
    await credits.grant(key, 10, { operationId: 'early', expiresAt: later(1) })
    await credits.grant(key, 10, { operationId: 'early too', expiresAt: later(1) })
    await credits.grant(key, 10, { operationId: 'promotion', priority: 10, expiresAt: later(99) })
    const listed = await credits.grants(key)
    expect(listed.map(({ operationId }) => operationId)).toEqual([
      'promotion',
      'early',
      'early too',
      'late',
      'never',
    ])
    expect(await credits.spend(key, 42, { operationId: 'spend' })).toMatchObject({
      ok: true,
      available: 8,
    })
    expect(await room.allocations(key)).toEqual([
      '6: 10 of promotion',
      '6: 10 of early',
      '6: 10 of early too',
      '6: 10 of late',
      '6: 2 of never',
    ])
    expect((await credits.grants(key)).map(({ remaining }) => remaining)).toEqual([8])
  })

  test('a refusal draws from nothing', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant' })
    expect(await credits.spend(key, 11, { operationId: 'spend' })).toMatchObject({
      ok: false,
      reason: 'insufficient',
      available: 10,
    })
    expect(await room.allocations(key)).toEqual([])
  })

  test('a grant is repeated by its id, and another amount under it is a conflict', async () => {
    const credits = open()
    const key = fresh()
    const first = await credits.grant(key, 10, { operationId: 'grant', expiresIn: '30 days' })
    const second = await credits.grant(key, 10, { operationId: 'grant', expiresIn: '30 days' })
    expect(second).toEqual({ ...first, replayed: true })
    expect(await credits.grant(key, 11, { operationId: 'grant' })).toMatchObject({
      ok: false,
      reason: 'conflict',
      field: 'amount',
    })
    expect(await room.movements(key)).toEqual(['grant +10'])
  })

  test('expiresIn is counted on the clock of the server', async () => {
    const credits = open()
    const key = fresh()
    const verdict = await credits.grant(key, 10, { operationId: 'grant', expiresIn: '2 h' })
    const [grant] = await credits.grants(key)
    expect(grant?.expiresAt?.getTime()).toBeCloseTo((verdict.ok ? +verdict.at : 0) + 7_200_000, -2)
    const { rows } = await fixture.observer.query<{ same: boolean }>(
      `SELECT g.expires_at = b.due_at AS same FROM holdfast.credit_grant g
       JOIN holdfast.balance b USING (bucket, account) WHERE g.id = $1`,
      [grant?.id],
    )
    expect(rows[0]?.same).toBe(true)
  })
})

describe('refunds', () => {
  test('go back to the grants that paid, the last one first, whatever the order is today', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'first', expiresAt: later(1) })
    await credits.grant(key, 10, { operationId: 'second', expiresAt: later(2) })
    await credits.spend(key, 15, { operationId: 'spend' })
    await credits.grant(key, 10, { operationId: 'sooner', priority: 1 })
    await credits.refund(key, 7, { operationId: 'refund 1', of: 'spend' })
    expect(await room.grants(key)).toEqual({
      first: '8/2/0',
      second: '0/10/0',
      sooner: '0/10/0',
    })
    expect(await credits.refund(key, 9, { operationId: 'refund 2', of: 'spend' })).toMatchObject({
      ok: false,
      reason: 'over-refund',
    })
    await credits.refund(key, 8, { operationId: 'refund 3', of: 'spend' })
    expect(await room.grants(key)).toEqual({
      first: '0/10/0',
      second: '0/10/0',
      sooner: '0/10/0',
    })
  })

  test('lapse if the grant that paid has expired, visibly, and again when repeated', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant', expiresAt: later(1) })
    await credits.grant(key, 5, { operationId: 'other' })
    await credits.spend(key, 12, { operationId: 'spend' })
    await room.makeDue(key, 'grant', 'expires_at')
    const refunded = await credits.refund(key, 6, { operationId: 'refund', of: 'spend' })
    expect(refunded).toMatchObject({ ok: true, available: 5 })
    expect(await room.grants(key)).toEqual({ grant: '6/0/4', other: '0/5/0' })
    expect(await room.movements(key)).toEqual([
      'grant +10',
      'grant +5',
      'debit -12',
      'refund +6',
      'lapse -4',
    ])
    expect(await credits.refund(key, 6, { operationId: 'refund', of: 'spend' })).toEqual({
      ...refunded,
      replayed: true,
    })
  })

  test('of a hold find what it took when it was settled above the estimate', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 30, { operationId: 'first', priority: 1 })
    await credits.grant(key, 30, { operationId: 'second' })
    const held = await credits.hold(key, 20, { operationId: 'hold', ttl: '1 min' })
    await credits.settle(held.ok ? (held.holdId as string) : '', 45)
    expect(await room.grants(key)).toEqual({ first: '30/0/0', second: '15/15/0' })
    await credits.refund(key, 25, { operationId: 'refund', of: 'hold' })
    expect(await room.grants(key)).toEqual({ first: '20/10/0', second: '0/30/0' })
  })
})

describe('holds', () => {
  test('draw at once and give back what is not settled, the last grant first', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'first', priority: 1 })
    await credits.grant(key, 10, { operationId: 'second' })
    const held = await credits.hold(key, 15, { operationId: 'hold', ttl: '1 min' })
    expect(held).toMatchObject({ ok: true, available: 5, held: 15 })
    expect(await room.grants(key)).toEqual({ first: '10/0/0', second: '5/5/0' })
    await credits.settle(held.ok ? (held.holdId as string) : '', 8)
    expect(await room.grants(key)).toEqual({ first: '8/2/0', second: '0/10/0' })
  })

  test('keep what they took when its grant expires; what comes back then lapses', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 100, { operationId: 'grant', expiresAt: later(1) })
    const held = await credits.hold(key, 60, { operationId: 'hold', ttl: '1 h' })
    await room.makeDue(key, 'grant', 'expires_at')
    expect(await credits.grants(key)).toEqual([])
    expect(await room.grants(key)).toEqual({ grant: '60/0/40' })
    const settled = await credits.settle(held.ok ? (held.holdId as string) : '', 50)
    expect(settled).toMatchObject({ ok: true, available: 0, debited: 100, held: 0 })
    expect(await room.grants(key)).toEqual({ grant: '50/0/50' })
    expect(await room.movements(key)).toEqual([
      'grant +100',
      'hold [60]',
      'lapse -40',
      'settle -50 [-60]',
      'lapse -10',
    ])
  })

  test('that expire give back by themselves, and what a late settlement takes is drawn anew', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'first', priority: 1 })
    await credits.grant(key, 10, { operationId: 'second' })
    const held = await credits.hold(key, 15, { operationId: 'hold', ttl: '1 min' })
    await room.makeHoldsDue(key)
    expect((await credits.grants(key)).map(({ remaining }) => remaining)).toEqual([10, 10])
    await credits.settle(held.ok ? (held.holdId as string) : '', 12)
    expect(await room.grants(key)).toEqual({ first: '10/0/0', second: '2/8/0' })
    await credits.refund(key, 12, { operationId: 'refund', of: 'hold' })
    expect(await room.grants(key)).toEqual({ first: '0/10/0', second: '0/10/0' })
  })

  test('are kept by withHold, whose body settles', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant' })
    const options = { estimate: 8, ttl: '1 min', operationId: 'call' } as const
    await credits.withHold(key, options, (hold) => hold.settle(3))
    expect(await room.grants(key)).toEqual({ grant: '3/7/0' })
  })
})

describe('in the transaction of the caller', () => {
  test('everything is undone with it, and nothing is written outside', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant' })
    const tx = await callerTransaction(fixture)
    await credits.grant(tx, key, 5, { operationId: 'more' })
    await credits.spend(tx, key, 12, { operationId: 'spend' })
    await credits.refund(tx, key, 1, { operationId: 'refund', of: 'spend' })
    await credits.voidGrant(tx, key, 'more', { operationId: 'void' })
    expect((await credits.grants(tx, key, { ended: true })).map(({ used }) => used)).toEqual([
      10, 1,
    ])
    await tx.query('ROLLBACK')
    expect(await room.movements(key)).toEqual(['grant +10'])
    expect(await room.grants(key)).toEqual({ grant: '0/10/0' })
  })

  test('a spending is a line of an operation on several books', async () => {
    const credits = open()
    const key = fresh()
    const calls = fixture.hf.quota({ name: 'calls', limit: 1, per: 'lifetime' })
    await credits.grant(key, 10, { operationId: 'grant' })
    const lines = async () => [await credits.line(key, 4), await calls.line(key, 1)]
    expect(
      await fixture.hf.ledger.apply(await lines(), { operationId: 'a', scope: key }),
    ).toMatchObject({ ok: true })
    expect(
      await fixture.hf.ledger.apply(await lines(), { operationId: 'b', scope: key }),
    ).toMatchObject({ ok: false, book: 'calls' })
    expect(await room.grants(key)).toEqual({ grant: '4/6/0' })
  })

  test('a hold and a refund are lines as well', async () => {
    const credits = open()
    const key = fresh()
    const calls = fixture.hf.quota({ name: 'calls', limit: 9, per: 'lifetime' })
    await credits.grant(key, 10, { operationId: 'grant' })
    const ttl = '1 min'
    const held = await fixture.hf.ledger.apply(
      [await credits.line(key, 5, { ttl }), await calls.line(key, 2, { ttl })],
      { operationId: 'hold', scope: key },
    )
    expect(await room.grants(key)).toEqual({ grant: '5/5/0' })
    await credits.settle(held.ok ? (held.holdId as string) : '')
    const of = 'hold'
    const refunded = await fixture.hf.ledger.apply(
      [await credits.line(key, 3, { of }), await calls.line(key, 1, { of })],
      { operationId: 'refund', scope: key },
    )
    expect(refunded).toMatchObject({ ok: true })
    expect(await room.grants(key)).toEqual({ grant: '2/8/0' })
  })
})
