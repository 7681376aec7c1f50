/** An audit of credits and stock: whatever their faces do adds up, and damage to grants is named. */
import { expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { creditsRoom } from './credits-room.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })
const external = (): { externalId: string } => ({ externalId: fresh() })
const day = 86_400_000

async function spendSome(key: string): Promise<void> {
  const credits = fixture.hf.credits({ name: 'credits', overdraft: 50 })
  const room = creditsRoom(fixture, 'credits')
  const soon = new Date(Date.now() + day)
  await credits.grant(key, 100, { operationId: 'early', expiresAt: soon, priority: 1 })
  await credits.grant(key, 40, { operationId: 'late', effectiveAt: soon })
  await credits.grant(key, 70, operation())
  const spent = operation()
  expect(await credits.spend(key, 90, spent)).toMatchObject({ ok: true })
  await credits.refund(key, 20, { ...operation(), of: spent.operationId })
  const holds = await Promise.all(
    [30, 20, 10].map((amount) => credits.hold(key, amount, { ...operation(), ttl: '1 h' })),
  )
  const [one, two] = holds.map((verdict) => (verdict.ok ? (verdict.holdId as string) : ''))
  await credits.settle(one as string, 45)
  await credits.release(two as string)
  await room.makeDue(key, 'late', 'effective_at')
  await credits.spend(key, 5, operation())
  await room.makeDue(key, 'early', 'expires_at')
  await room.makeHoldsDue(key)
  await fixture.hf.ledger.sweep()
  await credits.spend(key, 1_000, operation())
  await credits.spend(key, 60, operation())
}

test('credits and stock add up, whatever happened to them', async () => {
  await Promise.all([fresh(), fresh()].map(spendSome))
  const stock = fixture.hf.stock({ name: 'stock', locations: ['here', 'there'], backorder: 2 })
  await stock.receive([{ sku: 'mug', quantity: 10, location: 'here' }], external())
  const sold = external()
  await stock.issue([{ sku: 'mug', quantity: 3, location: 'here' }], sold)
  await stock.issue([{ sku: 'mug', quantity: 99, location: 'here' }], external())
  await stock.return([{ sku: 'mug', quantity: 1, location: 'here' }], {
    ...external(),
    of: sold.externalId,
  })
  await stock.transfer([{ sku: 'mug', quantity: 2 }], { ...external(), from: 'here', to: 'there' })
  await stock.adjust([{ sku: 'mug', quantity: -1, location: 'there' }], {
    ...external(),
    reason: 'broken',
  })
  const cart = await stock.reserve([{ sku: 'mug', quantity: 2, location: 'here' }], {
    ...external(),
    ttl: '1 h',
  })
  await stock.settle(cart.ok ? (cart.holdId as string) : '')
  await stock.issue([{ sku: 'tee', quantity: 2, location: 'here' }], external())
  expect(await fixture.hf.ledger.audit()).toMatchObject({ found: 0, problems: [] })
})

test('grants that do not add up are named', async () => {
  const key = fresh()
  await spendSome(key)
  await asSuperuser(
    fixture.observer,
    `UPDATE holdfast.credit_grant g SET amount = amount + 1 FROM holdfast.account a
     WHERE a.bucket = g.bucket AND a.id = g.account AND a.key = '${key}'`,
  )
  const { problems } = await fixture.hf.ledger.audit({ list: 1_000 })
  const found = problems.filter((problem) => problem.key === key)
  expect(new Set(found.map(({ check }) => check))).toEqual(new Set(['grants']))
  expect(found[0]?.what).toMatch(/^grant \S+: of \d+/)
})

test('a wall that was crossed by whatever kind of movement is named', async () => {
  const stock = fixture.hf.stock({ name: fresh() })
  await stock.receive([{ sku: 'cup', quantity: 5 }], external())
  await stock.issue([{ sku: 'cup', quantity: 5 }], external())
  await asSuperuser(
    fixture.observer,
    `UPDATE holdfast.movement m SET credit = 3, credited = 3 FROM holdfast.account a
     WHERE a.bucket = m.bucket AND a.id = m.account AND a.book = '${stock.name}'`,
  )
  const { problems } = await fixture.hf.ledger.audit({ list: 1_000 })
  const checks = problems.filter(({ book }) => book === stock.name).map(({ check }) => check)
  expect(checks).toContain('bound')
})
