import type pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { Credits } from '../../../src/credits/index.ts'
import { kinds } from '../../../src/ledger/operation.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { creditsRoom } from './credits-room.ts'

const fixture = ledgerFixture()
const room = creditsRoom(fixture, 'credits')
const open = (overdraft = 0): Credits<pg.PoolClient, number> =>
  fixture.hf.credits({ name: 'credits', overdraft })
const later = (days: number): Date => new Date(Date.UTC(2100, 0, 1 + days))

afterEach(() => room.assertAddsUp())

describe('debt', () => {
  test('is noted without a grant and paid first by the next one', async () => {
    const credits = open(50)
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'small' })
    expect(await credits.spend(key, 40, { operationId: 'spend' })).toMatchObject({
      ok: true,
      available: 20,
    })
    await credits.grant(key, 20, { operationId: 'part' })
    await credits.grant(key, 100, { operationId: 'rest' })
    expect(await room.allocations(key)).toEqual([
      '2: 10 of small',
      '2: 30 owed',
      '3: 20 of part, arrears',
      '4: 10 of rest, arrears',
    ])
    expect(await room.grants(key)).toEqual({ small: '10/0/0', part: '20/0/0', rest: '10/90/0' })
  })

  test('is paid by a grant to come when it begins', async () => {
    const credits = open(50)
    const key = fresh()
    await credits.spend(key, 40, { operationId: 'spend' })
    await credits.grant(key, 100, { operationId: 'grant', effectiveAt: later(1) })
    await room.makeDue(key, 'grant', 'effective_at')
    expect(await credits.grants(key)).toMatchObject([{ used: 40, remaining: 60 }])
  })

  test('a refund lowers it first; if it was paid since, those who paid it get it back', async () => {
    const credits = open(50)
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'small' })
    await credits.spend(key, 40, { operationId: 'spend' })
    await credits.refund(key, 5, { operationId: 'refund 1', of: 'spend' })
    expect(await room.allocations(key)).toEqual(['2: 10 of small', '2: 25 owed'])
    await credits.grant(key, 100, { operationId: 'large' })
    await credits.refund(key, 30, { operationId: 'refund 2', of: 'spend' })
    expect(await room.grants(key)).toEqual({ small: '5/5/0', large: '0/100/0' })
  })

  test('a refund of something else pays it, through the grant it comes back to', async () => {
    const credits = open(50)
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant' })
    await credits.spend(key, 10, { operationId: 'paid' })
    await credits.spend(key, 30, { operationId: 'owed' })
    expect(await credits.refund(key, 10, { operationId: 'refund', of: 'paid' })).toMatchObject({
      available: 30,
    })
    expect(await room.allocations(key)).toEqual([
      '2: 0 of grant',
      '3: 30 owed',
      '4: 10 of grant, arrears',
    ])
  })

  test('comes from a settlement above the hold, and a hold may be in it', async () => {
    const credits = open(10)
    const key = fresh()
    await credits.grant(key, 20, { operationId: 'grant' })
    const held = await credits.hold(key, 25, { operationId: 'hold', ttl: '1 h' })
    expect(held).toMatchObject({ ok: true, available: 5 })
    const settled = await credits.settle(held.ok ? (held.holdId as string) : '', 60)
    expect(settled).toMatchObject({ ok: true, credited: 20, debited: 60 })
    await credits.grant(key, 100, { operationId: 'next' })
    expect(await room.grants(key)).toEqual({ grant: '20/0/0', next: '40/60/0' })
    await credits.refund(key, 60, { operationId: 'refund', of: 'hold' })
    expect(await room.grants(key)).toEqual({ grant: '0/20/0', next: '0/100/0' })
  })
})

describe('credit that came without a grant', () => {
  test('becomes one without expiry, and what was taken before is given back as one', async () => {
    const credits = open()
    const key = fresh()
    const book = 'credits'
    const plain = (kind: 'opening' | 'adjust', amount: string, operationId: string) =>
      fixture.hf.ledger.apply([{ line: { kind: kinds[kind], book, key, amount } }], {
        operationId,
        scope: key,
      })
    await plain('opening', '100', 'import')
    await credits.spend(key, 30, { operationId: 'spend' })
    const held = await credits.hold(key, 20, { operationId: 'hold', ttl: '1 h' })
    await credits.grant(key, 5, { operationId: 'grant', expiresAt: later(1) })
    expect((await credits.grants(key)).map(({ remaining }) => remaining)).toEqual([5, 50])
    await credits.release(held.ok ? (held.holdId as string) : '')
    await credits.refund(key, 30, { operationId: 'refund', of: 'spend' })
    await plain('adjust', '7', 'found')
    await plain('adjust', '-2', 'lost')
    expect((await credits.grants(key)).map(({ remaining }) => remaining)).toEqual([
      3, 50, 20, 30, 7,
    ])
  })
})
