/** What an answer says is what is so: differences between the ledger and its model, each as a test. */
import { describe, expect, test } from 'vitest'
import type { Verdict } from '../../../src/ledger/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })

/** As if the clock had been an hour ahead until now. */
async function clockGoesBack(book: string): Promise<void> {
  const accounts = `(SELECT id FROM holdfast.account WHERE book = '${book}')`
  await asSuperuser(
    fixture.observer,
    `UPDATE holdfast.movement SET at = at + interval '1 hour' WHERE account IN ${accounts};
     UPDATE holdfast.operation SET at = at + interval '1 hour' WHERE account IN ${accounts};
     UPDATE holdfast.balance SET moved_at = moved_at + interval '1 hour' WHERE account IN ${accounts}`,
  )
}

/** As if the time of everything that is put aside or granted were over. */
async function timePasses(book: string): Promise<void> {
  const accounts = `(SELECT id FROM holdfast.account WHERE book = '${book}')`
  await fixture.observer.query(
    `UPDATE holdfast.hold SET expires_at = now() WHERE account IN ${accounts} AND state = 0;
     UPDATE holdfast.credit_grant SET expires_at = now() WHERE account IN ${accounts} AND expires_at < 'infinity';
     UPDATE holdfast.balance SET due_at = now() WHERE account IN ${accounts} AND due_at < 'infinity'`,
  )
}

describe('an operation of several lines', () => {
  test('is told per line why it was refused, whichever line comes first', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 5, per: 'lifetime' })
    await quota.consume('b', 1, { ...once(), scope: 's' })
    const lines = [await quota.line('a', 1, { of: 'nothing' }), await quota.line('b', 99)]
    const refused = await fixture.hf.ledger.apply(lines, { ...once(), scope: 's' })
    expect(refused.lines.map(({ refusal }) => refusal)).toEqual([undefined, 'insufficient'])
    expect(refused).toMatchObject({ reason: 'insufficient', key: 'b' })
    const other = [await quota.line('b', 1), await quota.line('a', 1, { of: 'nothing' })]
    const unknown = await fixture.hf.ledger.apply(other, { ...once(), scope: 's' })
    expect(unknown.lines[1]).toMatchObject({ refusal: 'not-found', allowance: 0, available: 0 })
  })

  test('says when its hold expires, whichever line that is', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 5, per: 'lifetime' })
    const id = once()
    const apply = async (): Promise<Verdict<number>> =>
      await fixture.hf.ledger.apply(
        [await quota.line('b', 1), await quota.line('c', 1, { ttl: '1 h' })],
        { ...id, scope: 's' },
      )
    const first = await apply()
    expect(first).toMatchObject({ ok: true, expiresAt: expect.any(Date) })
    expect(await apply()).toEqual({ ...first, replayed: true })
  })

  test('is repeated as it was, also if a part of it lapsed', async () => {
    const credits = fixture.hf.credits({ name: fresh(), overdraft: 100 })
    await credits.grant('u', 10, { ...once(), expiresIn: '1 h' })
    const spent = once()
    await credits.spend('u', 6, spent)
    await timePasses(credits.name)
    const id = once()
    const apply = async (): Promise<Verdict<number>> =>
      await fixture.hf.ledger.apply(
        [await credits.line('u', 2, { of: spent.operationId }), await credits.line('u', 1)],
        { ...id, scope: 'u' },
      )
    const first = await apply()
    expect(first.ok).toBe(true)
    expect(await apply()).toEqual({ ...first, replayed: true })
  })
})

describe('a clock that has gone back', () => {
  test('does not make a balance that of an earlier moment', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 5, per: 'lifetime' })
    await quota.consume('k', 2, once())
    await clockGoesBack(quota.name)
    expect(await fixture.hf.ledger.balance(quota.name, 'k')).toMatchObject({
      debited: 2,
      sequence: 1,
    })
  })

  test('does not make a grant what its expiry left', async () => {
    const credits = fixture.hf.credits({ name: fresh() })
    const id = { ...once(), expiresIn: '1 h' as const }
    const first = await credits.grant('u', 10, id)
    await clockGoesBack(credits.name)
    await timePasses(credits.name)
    await credits.grants('u')
    const again = await credits.grant('u', 10, id)
    expect(again).toMatchObject({ ok: true, replayed: true, available: first.available })
  })
})

test('the same id for another grant voids nothing, and says so', async () => {
  const credits = fixture.hf.credits({ name: fresh() })
  await credits.grant('u', 10, { operationId: 'one' })
  await credits.grant('u', 10, { operationId: 'two' })
  const id = once()
  expect((await credits.voidGrant('u', 'one', id)).ok).toBe(true)
  expect(await credits.voidGrant('u', 'two', id)).toMatchObject({
    ok: false,
    reason: 'conflict',
    field: 'grant',
  })
  expect(await credits.voidGrant('u', 'one', id)).toMatchObject({ ok: true, replayed: true })
})

test('a balance is as old as its last movement, also if something might have been due', async () => {
  const quota = fixture.hf.quota({ name: fresh(), limit: 5, per: 'lifetime' })
  const held = await quota.hold('k', 2, { ...once(), ttl: '1 h' })
  await fixture.observer.query(
    `UPDATE holdfast.balance SET due_at = now()
     WHERE account IN (SELECT id FROM holdfast.account WHERE book = $1)`,
    [quota.name],
  )
  await quota.consume('k', 99, once())
  const { at } = await fixture.hf.ledger.balance(quota.name, 'k')
  expect(held.ok && at?.getTime()).toBe(held.ok && held.at.getTime())
})

test('a part of a reservation that is refused is not told as repeated', async () => {
  const stock = fixture.hf.stock({ name: fresh() })
  const lines = ['a', 'b'].map((sku) => ({ sku, quantity: 2 }))
  await stock.receive(lines, { externalId: fresh() })
  const held = await stock.reserve(lines, { externalId: fresh(), ttl: '1 h' })
  const holdId = held.ok ? (held.holdId as string) : ''
  await stock.settle(holdId, { lines: [{ sku: 'a', quantity: 2 }] })
  const both = [
    { sku: 'a', quantity: 2 },
    { sku: 'b', quantity: 3 },
  ]
  expect(await stock.settle(holdId, { lines: both })).toMatchObject({ ok: false, replayed: false })
})
