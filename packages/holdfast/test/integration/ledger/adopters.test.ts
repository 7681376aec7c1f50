/** What somebody who adopted the ledger was told that was not so. */
import { describe, expect, test } from 'vitest'
import { createHoldfast } from '../../../src/index.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })
const invalid = { code: 'OPTION_INVALID' }

describe('a forgotten scope', () => {
  test.each(['day', 'lifetime'] as const)('is told by setLimit too, per %s', async (per) => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per })
    const forgotten = { code: 'LEDGER_SCOPE_FORGOTTEN' }
    await quota.consume('ann', 10, { ...once(), scope: 'acme' })
    await expect(quota.setLimit('ann', 20, once())).rejects.toMatchObject(forgotten)
    await expect(quota.consume('ann', 1, once())).rejects.toMatchObject(forgotten)
    expect(await quota.setLimit('ann', 20, { ...once(), scope: 'acme' })).toMatchObject({
      ok: true,
      available: 10,
    })
    // Another account is meant, and said to be.
    expect(await quota.setLimit('ann', 5, { ...once(), scope: 'ann' })).toMatchObject({ ok: true })
    expect(await quota.consume('ann', 5, once())).toMatchObject({ ok: true })
  })
})

describe('a verdict tells what there is', () => {
  test.each(['day', 'lifetime'] as const)('of setLimit and its repetition, per %s', async (per) => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per })
    await quota.consume('ann', 8, once())
    const id = once()
    const set = await quota.setLimit('ann', 20, id)
    expect(set).toMatchObject({ ok: true, available: 12, debited: 8, allowance: 20 })
    await quota.consume('ann', 2, once())
    expect(await quota.setLimit('ann', 20, id)).toEqual({ ...set, replayed: true })
    expect(await quota.setLimit('ann', 21, id)).toMatchObject({
      ok: false,
      reason: 'conflict',
      field: 'limit',
      available: 10,
      debited: 10,
    })
    expect(await quota.setLimit('bob', 20, id)).toMatchObject({ ok: true, available: 20 })
    expect((await fixture.hf.ledger.audit()).problems).toEqual([])
  })

  test('of a conflict, also of goods and of an account that is new', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'day' })
    const id = once()
    await quota.consume('ann', 4, id)
    expect(await quota.consume('ann', 5, id)).toMatchObject({
      ok: false,
      reason: 'conflict',
      available: 6,
      debited: 4,
      allowance: 10,
      sequence: 1,
    })
    const other = { ...id, scope: 'ann' }
    expect(await quota.consume('bob', 4, other)).toMatchObject({
      reason: 'conflict',
      field: 'key',
      available: 10,
    })
    const stock = fixture.hf.stock({ name: fresh() })
    await stock.receive([{ sku: 'cap', quantity: 4 }], { externalId: 'in' })
    await stock.issue([{ sku: 'cap', quantity: 1 }], { externalId: 'out' })
    expect(await stock.issue([{ sku: 'cap', quantity: 2 }], { externalId: 'out' })).toMatchObject({
      reason: 'conflict',
      lines: [{ sku: 'cap', onHand: 3, available: 3 }],
    })
  })
})

test('all or nothing is not the repetition of as much as there was', async () => {
  const credits = fixture.hf.credits({ name: fresh() })
  await credits.grant('ann', 20, once())
  const id = once()
  const taken = await credits.spend('ann', 50, { ...id, upTo: true })
  expect(taken).toMatchObject({ ok: true, taken: 20 })
  expect(await credits.spend('ann', 50, { ...id, upTo: true })).toEqual({
    ...taken,
    replayed: true,
  })
  expect(await credits.spend('ann', 50, id)).toMatchObject({
    ok: false,
    reason: 'conflict',
    field: 'amount',
  })
})

test('of a line that is released or extended, no quantity is told', async () => {
  const stock = fixture.hf.stock({ name: fresh() })
  await stock.receive([{ sku: 'tee', quantity: 9 }], { externalId: 'in' })
  const held = await stock.reserve([{ sku: 'tee', quantity: 3 }], { externalId: 'r', ttl: '1 h' })
  const holdId = held.ok ? (held.holdId as string) : ''
  const part = { lines: [{ sku: 'tee', quantity: 1 }] } as never
  await expect(stock.release(holdId, part)).rejects.toMatchObject(invalid)
  await expect(stock.extend(holdId, '2 h', part)).rejects.toMatchObject(invalid)
  expect(await stock.level('tee')).toMatchObject({ held: 3 })
  expect(await stock.release(holdId, { lines: [{ sku: 'tee' }] })).toMatchObject({ ok: true })
})

test('where nobody hears of wait and signal, they are refused', async () => {
  const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
  const tx = await callerTransaction(fixture)
  for (const limit of [{ wait: 100 }, { signal: new AbortController().signal }]) {
    const options = { ...once(), ...limit } as never
    await expect(quota.consume(tx, 'ann', 1, options)).rejects.toMatchObject(invalid)
    await expect(quota.setLimit(tx, 'ann', 1, options)).rejects.toMatchObject(invalid)
    await expect(quota.setLimit('ann', 1, options)).rejects.toMatchObject(invalid)
    const lines = [await quota.line('ann', 1)]
    await expect(fixture.hf.ledger.apply(tx, lines, options)).rejects.toMatchObject(invalid)
  }
})

test('one name of the schema is enough for everything', async () => {
  const schema = 'billing'
  await migrate(fromPg(fixture.observer), { schema })
  const hf = createHoldfast(fromPg(fixture.pool), { schema })
  const quota = hf.quota({ name: fresh(), limit: 10, per: 'day' })
  await quota.consume('ann', 1, once())
  await hf.once(fresh(), async () => 1)
  await (await hf.leases.acquire(fresh())).release()
  await hf.work({ queue: 'mails' }).enqueue({ payload: 1 })
  const ran: number[] = []
  await hf
    .schedule({
      name: fresh(),
      every: '7 days',
      guarantee: 'at-least-once',
      handler: async () => {
        ran.push(1)
      },
    })
    .runNow()
  expect(ran).toEqual([1])
  await hf.observe.books()
  const { rows } = await fixture.observer.query(
    `SELECT (SELECT count(*) FROM billing.movement)::int AS movements,
       (SELECT count(*) FROM billing.once)::int AS once, (SELECT count(*) FROM billing.work)::int AS work,
       (SELECT count(*) FROM billing.lease)::int > 0 AS leased,
       (SELECT count(*) FROM billing.schedule)::int AS schedules`,
  )
  expect(rows).toEqual([{ movements: 1, once: 1, work: 1, leased: true, schedules: 1 }])
  await hf.close()
})

describe('what a hurried caller forgets', () => {
  const quota = (): ReturnType<typeof fixture.hf.quota<'number'>> =>
    fixture.hf.quota({ name: fresh(), limit: 10, per: 'day' })
  const name = { code: 'LEDGER_NAME_INVALID' }
  const amount = { code: 'LEDGER_AMOUNT_INVALID' }

  test.each([
    ['the key', () => quota().consume(undefined as never, 1, once()), name],
    ['the key, as null', () => quota().hold(null as never, 1, { ...once(), ttl: 1 }), name],
    ['the options', () => quota().consume('ann', 1, undefined as never), name],
    ['the amount', () => quota().consume('ann', undefined as never, once()), amount],
    ['options of a hold', () => quota().hold('ann', 1, undefined as never), invalid],
    ['options of a refund', () => quota().refund('ann', 1, undefined as never), name],
    ['options of a limit', () => quota().setLimit('ann', 1, undefined as never), name],
    ['options of an adjustment', () => quota().adjust('ann', 1, undefined as never), invalid],
    [
      'the key of a grant',
      () => fixture.hf.credits({ name: fresh() }).grant(undefined as never, 5, once()),
      name,
    ],
    [
      'to await a line',
      () => fixture.hf.ledger.apply([quota().line('a', 1) as never], once()),
      invalid,
    ],
    ['the lines', () => fixture.hf.ledger.apply(undefined as never, once()), invalid],
    ['the options of lines', () => fixture.hf.ledger.apply([], undefined as never), invalid],
    ['the transfer', () => fixture.hf.ledger.transfer(undefined as never, once()), invalid],
    ['one side of it', () => fixture.hf.ledger.transfer({ from: [] } as never, once()), invalid],
    [
      'that a rate has nothing to move',
      async () => {
        const rate = fixture.hf.quota({ name: fresh(), limit: 5, rate: '1 s' })
        const credits = fixture.hf.credits({ name: fresh() })
        const to = [credits.grantLine('b', 1)]
        return await fixture.hf.ledger.transfer({ from: [await rate.line('a', 1)], to }, once())
      },
      invalid,
    ],
  ])('%s', async (_, call, error) => {
    await expect(Promise.resolve().then(call)).rejects.toMatchObject(error)
  })

  test('that there is no limit without an end', () => {
    const endless = (): unknown => fixture.hf.quota({ name: fresh(), limit: Infinity, per: 'day' })
    expect(endless).toThrow(expect.objectContaining(amount))
  })
})
