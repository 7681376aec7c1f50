/** Every client reads, sets limits, sweeps, audits and maintains the same way. */
import { sample } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHoldfast } from '../../../src/index.ts'
import { everyClient } from '../../support/every-client.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })

describe.each(sample(Object.keys(everyClient), 3, 1))('%s', (client) => {
  test('reads and looks after the ledger', async () => {
    const opened = await everyClient[client]?.(fixture.database.url)
    if (opened === undefined) throw new Error('no such client')
    onTestFinished(async () => void (await opened.end()))
    const hf = createHoldfast(opened.driver)
    const name = fresh()
    const quota = hf.quota({ name, limit: 2n ** 60n, per: 'month', amounts: 'bigint' })
    const key = `${fresh()} "quoted" ' \\ ünïcödé`
    await quota.setLimit(key, 2n ** 61n, operation())
    await hf.transaction(async (tx) => {
      await quota.consume(tx, key, 2n ** 59n, {
        ...operation(),
        note: { camelCase: 1, snake_case: 2 },
      })
      expect((await quota.peek(tx, key)).used).toBe(2n ** 59n)
      expect(await hf.ledger.balance(tx, name, key, { amounts: 'bigint' })).toMatchObject({
        debited: 2n ** 59n,
      })
    })
    const held = await quota.hold(key, 5, { ...operation(), ttl: '1 h' })
    expect(await quota.peek(key)).toMatchObject({
      limit: 2n ** 61n,
      limitIsSet: true,
      used: 2n ** 59n,
      held: 5n,
      window: { start: expect.any(Date), end: expect.any(Date) },
    })
    const { movements, next } = await hf.ledger.history(name, key, { amounts: 'bigint', limit: 2 })
    expect(movements).toMatchObject([
      { kind: 'hold', hold: 5n, holdId: held.ok ? held.holdId : '' },
      { kind: 'debit', debit: 2n ** 59n, note: { camelCase: 1, snake_case: 2 } },
    ])
    const rest = await hf.ledger.history(name, key, { amounts: 'bigint', before: next })
    expect(rest.movements.map(({ kind }) => kind)).toEqual(['limit', 'limit'])
    expect(await hf.ledger.holds(name, key, { amounts: 'bigint' })).toMatchObject([
      { amount: 5n, overdue: false, expiresAt: expect.any(Date) },
    ])
    const past = new Date(Date.now() - 86_400_000 * 40)
    expect(await hf.ledger.balanceAt(name, key, past)).toMatchObject({ sequence: 0 })
    expect(await hf.ledger.sweep()).toEqual({ fallen: 0, more: false })
    expect(await hf.ledger.maintain({ operationHorizon: '2 days' })).toMatchObject({
      operationsForgotten: 0,
      monthsAhead: 12,
    })
    const controller = new AbortController()
    const audit = await hf.ledger.audit({ signal: controller.signal })
    expect(audit).toMatchObject({ found: 0, snapshotAt: expect.any(Date) })
    expect(audit.movements).toBeGreaterThanOrEqual(5)
    await expect(hf.transaction(() => hf.ledger.audit())).rejects.toMatchObject({
      code: 'TX_NESTED',
    })
  })
})
