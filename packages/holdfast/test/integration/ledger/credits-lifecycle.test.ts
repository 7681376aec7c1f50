import { waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { Credits } from '../../../src/credits/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { creditsRoom } from './credits-room.ts'

const fixture = ledgerFixture()
const room = creditsRoom(fixture, 'credits')
const open = (overdraft = 0): Credits<pg.PoolClient, number> =>
  fixture.hf.credits({ name: 'credits', overdraft })
const later = (days: number): Date => new Date(Date.UTC(2100, 0, 1 + days))

afterEach(() => room.assertAddsUp())

describe('expiry', () => {
  test('lapses what is left when the account is touched next', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant', expiresAt: later(1) })
    await credits.grant(key, 5, { operationId: 'other' })
    await credits.spend(key, 4, { operationId: 'spend 1' })
    await room.makeDue(key, 'grant', 'expires_at')
    expect(await credits.spend(key, 6, { operationId: 'spend 2' })).toMatchObject({
      ok: false,
      available: 5,
    })
    expect(await room.movements(key)).toEqual(['grant +10', 'grant +5', 'debit -4', 'lapse -6'])
  })

  test('is booked by the sweeper on an account that nobody touches', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant', expiresIn: 20 })
    await credits.grant(key, 7, { operationId: 'to come', effectiveAt: later(1) })
    await room.makeDue(key, 'to come', 'effective_at')
    await waitUntil('the sweeper has booked both', async () => {
      await fixture.observer.query('SELECT holdfast.sweep(100)')
      const movements = await room.movements(key)
      return movements.length === 4 ? movements : undefined
    })
    expect((await room.movements(key)).toSorted()).toEqual(
      ['grant +10', 'grant', 'grant +7', 'lapse -10'].toSorted(),
    )
    expect((await credits.grants(key)).map(({ operationId }) => operationId)).toEqual(['to come'])
  })

  test('of a grant that has expired before it came lapses all of it at once', async () => {
    const credits = open(50)
    const key = fresh()
    await credits.spend(key, 20, { operationId: 'spend' })
    const verdict = await credits.grant(key, 10, {
      operationId: 'grant',
      expiresAt: new Date('2001-01-01'),
    })
    expect(verdict).toMatchObject({ ok: true, credited: 10, debited: 30 })
    expect(await room.movements(key)).toEqual(['debit -20', 'grant +10', 'lapse -10'])
    expect(await room.grants(key)).toEqual({ grant: '0/0/10' })
    expect(await credits.grant(key, 10, { operationId: 'grant' })).toEqual({
      ...verdict,
      replayed: true,
    })
  })

  test('does not depend on when somebody looks: what fell due is booked in the order of time', async () => {
    // The grant ends while part of it is held; only later the hold expires.
    const touchedAtOnce = fresh()
    const touchedLate = fresh()
    const credits = open()
    for (const key of [touchedAtOnce, touchedLate]) {
      await credits.grant(key, 100, {
        operationId: 'grant',
        expiresAt: later(1),
        rollover: { limit: 50, for: '1 h' },
      })
      await credits.hold(key, 70, { operationId: 'hold', ttl: '1 h' })
      const past = async (table: string, ago: string): Promise<unknown> =>
        fixture.observer.query(
          `UPDATE holdfast.${table} SET expires_at = clock_timestamp() - $1::interval
           WHERE operation_id = $2 AND account IN (SELECT id FROM holdfast.account WHERE key = $3)`,
          [ago, table === 'hold' ? 'hold' : 'grant', key],
        )
      await past('credit_grant', '20 s')
      if (key === touchedAtOnce) {
        await fixture.observer.query(`UPDATE holdfast.balance SET due_at = '-infinity'`)
        await credits.grants(key)
      }
      await past('hold', '10 s')
      await fixture.observer.query(`UPDATE holdfast.balance SET due_at = '-infinity'`)
      await credits.grants(key)
    }
    expect(await room.grants(touchedLate)).toEqual({ grant: '0/0/100', 'grant, rolled': '0/30/0' })
    expect(await room.grants(touchedAtOnce)).toEqual(await room.grants(touchedLate))
    expect(await room.movements(touchedAtOnce)).toEqual(await room.movements(touchedLate))
  })
})

describe('rollover', () => {
  test('keeps what fits as a grant of its own, lapses the rest, and happens once', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 100, {
      operationId: 'grant',
      priority: 7,
      expiresAt: later(1),
      rollover: { limit: 25, for: '10 days' },
    })
    await credits.spend(key, 40, { operationId: 'spend' })
    await room.makeDue(key, 'grant', 'expires_at')
    const [rolled] = await credits.grants(key)
    const [before] = await credits
      .grants(key, { ended: true })
      .then((all) => all.filter(({ state }) => state === 'expired'))
    expect(rolled).toMatchObject({ amount: 25, remaining: 25, priority: 7, rolledFrom: before?.id })
    expect(Number(rolled?.expiresAt) - Number(before?.expiresAt)).toBe(864_000_000)
    expect(await room.movements(key)).toEqual(['grant +100', 'debit -40', 'lapse -35'])
    await room.makeDue(key, 'grant', 'expires_at')
    expect(await credits.grants(key)).toEqual([])
    expect((await room.movements(key)).at(-1)).toBe('lapse -25')
  })

  test('leaves no trace if nothing is left, and changes no balance if all fits', async () => {
    const credits = open()
    const [spent, whole] = [fresh(), fresh()]
    const terms = { expiresAt: later(1), rollover: { limit: 10, for: '1 h' } } as const
    await credits.grant(spent, 10, { operationId: 'grant', ...terms })
    await credits.spend(spent, 10, { operationId: 'spend' })
    await credits.grant(whole, 10, { operationId: 'grant', ...terms })
    await room.makeDue(spent, 'grant', 'expires_at')
    await room.makeDue(whole, 'grant', 'expires_at')
    expect(await credits.grants(spent)).toEqual([])
    expect(await credits.grants(whole)).toHaveLength(1)
    expect(await room.movements(spent)).toEqual(['grant +10', 'debit -10'])
    expect(await room.movements(whole)).toEqual(['grant +10'])
  })
})

describe('a grant to come', () => {
  test('cannot be spent before, and is booked when it begins', async () => {
    const credits = open()
    const key = fresh()
    const verdict = await credits.grant(key, 10, {
      operationId: 'grant',
      effectiveAt: later(1),
      expiresIn: '1 h',
    })
    expect(verdict).toMatchObject({ ok: true, available: 0 })
    const [pending] = await credits.grants(key)
    expect(pending).toMatchObject({ state: 'pending', remaining: 10, effectiveAt: later(1) })
    expect(pending?.expiresAt).toEqual(new Date(+later(1) + 3_600_000))
    expect(await credits.spend(key, 1, { operationId: 'too early' })).toMatchObject({ ok: false })
    await room.makeDue(key, 'grant', 'effective_at')
    expect(await credits.spend(key, 1, { operationId: 'in time' })).toMatchObject({
      ok: true,
      available: 9,
    })
    expect(await room.movements(key)).toEqual(['grant', 'grant +10', 'debit -1'])
  })

  test('becomes due in time by itself', async () => {
    const credits = open()
    const key = fresh()
    const { rows } = await fixture.observer.query<{ soon: Date }>(
      `SELECT clock_timestamp() + interval '150 ms' AS soon`,
    )
    const effectiveAt = rows[0]?.soon as Date
    await credits.grant(key, 10, { operationId: 'grant', effectiveAt, expiresIn: '1 h' })
    const verdict = await waitUntil('the grant has begun', async () => {
      const tried = await credits.spend(key, 1, { operationId: 'spend' })
      return tried.ok ? tried : undefined
    })
    expect(+verdict.at).toBeGreaterThanOrEqual(+effectiveAt)
  })

  test('that begins and ends before anybody looks is booked and lapses', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, {
      operationId: 'grant',
      effectiveAt: later(1),
      expiresAt: later(2),
    })
    await room.makeDue(key, 'grant', 'effective_at')
    await room.makeDue(key, 'grant', 'expires_at')
    expect(await credits.grants(key)).toEqual([])
    expect(await room.movements(key)).toEqual(['grant', 'grant +10', 'lapse -10'])
  })
})

describe('voiding a grant', () => {
  test('lapses what is neither spent nor held; what is held lapses when it comes back', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 100, { operationId: 'grant' })
    await credits.spend(key, 30, { operationId: 'spend' })
    const held = await credits.hold(key, 20, { operationId: 'hold', ttl: '1 h' })
    const voided = await credits.voidGrant(key, 'grant', { operationId: 'void' })
    expect(voided).toMatchObject({ ok: true, available: 0, debited: 80, held: 20 })
    expect(await credits.voidGrant(key, 'grant', { operationId: 'void' })).toEqual({
      ...voided,
      replayed: true,
    })
    await credits.release(held.ok ? (held.holdId as string) : '')
    expect(await room.movements(key)).toEqual([
      'grant +100',
      'debit -30',
      'hold [20]',
      'void -50',
      'release [-20]',
      'lapse -20',
    ])
    expect(await room.grants(key)).toEqual({ grant: '30/0/70' })
  })

  test('is refused for one that has ended or never was', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'voided' })
    await credits.grant(key, 10, { operationId: 'expired', expiresAt: later(1) })
    const [, grant] = await credits.grants(key)
    await credits.voidGrant(key, grant?.id as string, { operationId: 'by its id' })
    await room.makeDue(key, 'expired', 'expires_at')
    expect(await credits.voidGrant(key, 'voided', { operationId: 'a' })).toMatchObject({
      ok: false,
      reason: 'ended',
      state: 'voided',
    })
    expect(await credits.voidGrant(key, 'expired', { operationId: 'b' })).toMatchObject({
      ok: false,
      reason: 'ended',
      state: 'expired',
    })
    expect(await credits.voidGrant(key, 'no such', { operationId: 'c' })).toMatchObject({
      ok: false,
      reason: 'not-found',
    })
  })

  test('before it begins takes nothing from the balance', async () => {
    const credits = open()
    const key = fresh()
    await credits.grant(key, 10, { operationId: 'grant', effectiveAt: later(1) })
    expect(await credits.voidGrant(key, 'grant', { operationId: 'void' })).toMatchObject({
      ok: true,
      credited: 0,
      debited: 0,
    })
    expect(await credits.grants(key, { ended: true })).toMatchObject([
      { state: 'voided', lapsed: 10 },
    ])
  })
})

test('what gives a grant or takes it away names it in the history, and nothing else does', async () => {
  const credits = open()
  const key = fresh()
  await credits.grant(key, 10, { operationId: 'voided' })
  await credits.grant(key, 10, { operationId: 'expired', expiresAt: later(1) })
  await credits.grant(key, 10, { operationId: 'later', effectiveAt: later(1) })
  await credits.voidGrant(key, 'voided', { operationId: 'void' })
  await room.makeDue(key, 'later', 'effective_at')
  await credits.spend(key, 1, { operationId: 'spend' })
  await room.makeDue(key, 'expired', 'expires_at')
  await credits.spend(key, 1, { operationId: 'spend more' })
  const grants = await credits.grants(key, { ended: true })
  const names = new Map(grants.map(({ id, operationId }) => [id, operationId]))
  const { movements } = await fixture.hf.ledger.history('credits', key)
  const told = movements
    .toReversed()
    .map(({ kind, grantId }) => [kind, grantId === undefined ? undefined : names.get(grantId)])
  expect(told).toEqual([
    ['grant', 'voided'],
    ['grant', 'expired'],
    ['grant', 'later'],
    ['void', 'voided'],
    ['grant', 'later'],
    ['debit', undefined],
    ['lapse', 'expired'],
    ['debit', undefined],
  ])
})

test('options that make no sense are refused before anything is sent', async () => {
  const credits = open()
  const wrong = [
    { priority: -1 },
    { priority: 1.5 },
    { expiresAt: later(1), expiresIn: '1 h' },
    { expiresAt: later(1), effectiveAt: later(2) },
    { expiresAt: new Date(Number.NaN) },
    { expiresAt: '2030-01-01' as unknown as Date },
    { rollover: { limit: 1, for: '1 h' } },
    { expiresIn: Number.MAX_SAFE_INTEGER },
    { expiresIn: '1 h', rollover: { limit: 0, for: '1 h' } },
  ] as const
  for (const terms of wrong) {
    await expect(credits.grant('key', 1, { operationId: fresh(), ...terms })).rejects.toMatchObject(
      { code: expect.stringMatching(/^(OPTION_INVALID|LEDGER_AMOUNT_INVALID)$/) },
    )
  }
  await expect(
    credits.hold('key', 1, { operationId: fresh() } as unknown as { operationId: string; ttl: 1 }),
  ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  await expect(credits.grant('key', 2n ** 60n, { operationId: fresh() })).rejects.toMatchObject({
    code: 'LEDGER_AMOUNT_UNSAFE',
  })
  const large = fixture.hf.credits({ name: 'large credits', amounts: 'bigint' })
  const key = fresh()
  await large.grant(key, 2n ** 60n, { operationId: 'grant' })
  expect(await large.spend(key, 1n, { operationId: 'spend' })).toMatchObject({
    available: 2n ** 60n - 1n,
  })
  expect((await large.grants(key))[0]?.used).toBe(1n)
})
