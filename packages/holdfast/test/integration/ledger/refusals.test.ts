import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import {
  answersOf,
  callApplyPlain,
  columnsOf,
  honestLine,
  type RawLine,
} from '../../support/ledger-raw.ts'

/**
 * What apply() says where it refuses. Most refusals are decided without a lock. Where an earlier line of the same call
 * has taken what is missing, or the refusal is to be remembered, they are decided under the lock.
 */
const fixture = ledgerFixture()

const [short, becauseOfOther] = [2, 9]
const [remembered, rolling] = [128, 4]

/** The status of each line, and when to try again in microseconds since 1970, of lines that are operations of their own. */
async function send(...lines: RawLine[]): Promise<{ status: number; retry: number | undefined }[]> {
  const numbered = lines.map((line, op) => ({ ...line, op }))
  const answers = await answersOf(fixture.pool, columnsOf(numbered))
  return answers.map(([, status, , , , , , , extra]) => ({
    status: Number(status),
    retry: extra === undefined ? undefined : Number(extra),
  }))
}

/** Debits of one key. */
function debits(change: Partial<RawLine>): (amount: number) => RawLine {
  const [scope, key] = [fresh(), fresh()]
  return (amount) => ({
    ...honestLine(scope, key, fresh()),
    kind: 2,
    allowance: '5',
    amount: String(amount),
    ...change,
  })
}

describe('under the lock, when to try again', () => {
  test('of a calendar window: when it ends, unless it is more than the limit', async () => {
    const debit = debits({ unit: 'year', zone: 'UTC' })
    const [taken, refused, tooMuch] = await send(debit(3), debit(3), debit(6))
    const next = Date.UTC(new Date().getUTCFullYear() + 1, 0) * 1000
    expect(taken?.status).toBe(0)
    expect(refused).toEqual({ status: short, retry: next })
    expect(tooMuch).toEqual({ status: short, retry: undefined })
    const [all] = await send(debit(3), debit(5)).then((answers) => answers.slice(1))
    expect(all).toEqual({ status: short, retry: next })
  })

  test('of a rate: when as much has flowed in, unless it is more than the burst', async () => {
    const everyUs = 3_600_000_000
    const debit = debits({ everyUs: String(everyUs) })
    const before = Date.now() * 1000
    const [taken, refused, all, tooMuch] = await send(debit(3), debit(3), debit(5), debit(6))
    const after = (Date.now() + 1) * 1000
    expect(taken?.status).toBe(0)
    expect([refused?.status, all?.status]).toEqual([short, short])
    // 2 are left, so 1 more is missing of 3, and 3 of 5.
    expect(refused?.retry).toBeGreaterThanOrEqual(before + everyUs)
    expect(refused?.retry).toBeLessThanOrEqual(after + everyUs)
    expect((all?.retry ?? 0) - (refused?.retry ?? 0)).toBe(2 * everyUs)
    expect(tooMuch).toEqual({ status: short, retry: undefined })
  })

  test('of a rolling window: when enough of it has expired, also if that is remembered', async () => {
    const [scope, key] = [fresh(), fresh()]
    const hold = (amount: number, ttlMs: number, flags: number): RawLine => ({
      ...honestLine(scope, key, fresh()),
      kind: 3,
      allowance: '5',
      amount: String(amount),
      ttlMs: String(ttlMs),
      ref: fresh(),
      flags,
    })
    const [first, second] = await send(hold(2, 60_000, rolling), hold(2, 120_000, rolling))
    expect([first?.status, second?.status]).toEqual([0, 0])
    const flags = rolling + remembered
    const ask = async (amount: number): Promise<number | undefined> => {
      const [answer] = await send(hold(amount, 60_000, flags))
      expect(answer?.status).toBe(short)
      return answer?.retry
    }
    // 1 is left: 3 need the first to expire, 4 the second as well.
    expect(await ask(3)).toBe(first?.retry)
    expect(await ask(4)).toBe(second?.retry)
    expect(await ask(5)).toBe(second?.retry)
  })

  test('of what does not come back by itself: nothing is said', async () => {
    const debit = debits({})
    const [, refused] = await send(debit(3), debit(3))
    expect(refused).toEqual({ status: short, retry: undefined })
  })
})

test('without a lock: which lines are short, and which are refused because of them', async () => {
  const scope = fresh()
  const line = (key: string, change: Partial<RawLine>): RawLine => ({
    ...honestLine(scope, key, fresh()),
    allowance: '5',
    amount: '3',
    kind: 2,
    ...change,
  })
  const hold = { kind: 3, ttlMs: '3600000' }
  const cases: readonly (readonly [key: string, change: Partial<RawLine>, status: number])[] = [
    ['debit', {}, short],
    ['hold', { ...hold, ref: fresh() }, short],
    ['remembered', { flags: remembered }, short],
    ['whatever the balance', { flags: 1 }, becauseOfOther],
    ['credit', { kind: 1 }, becauseOfOther],
    // What is due may make room.
    ['due', {}, becauseOfOther],
    ['enough', { amount: '1' }, becauseOfOther],
  ]
  // 1 is left of each.
  await send(...cases.map(([key]) => line(key, { ...hold, amount: '4', ref: fresh() })))
  await fixture.observer.query(
    `UPDATE holdfast.balance b SET due_at = '2026-01-01' FROM holdfast.account a
     WHERE a.bucket = b.bucket AND a.id = b.account AND a.scope = $1 AND a.key = 'due'`,
    [scope],
  )
  const [id, operationId] = [fresh(), fresh()]
  const lines = cases.map(([key, change]) => line(key, { ...change, id, operationId, op: 0 }))
  const answers = await answersOf(fixture.pool, columnsOf(lines))
  expect(answers.map(([, status]) => Number(status))).toEqual(cases.map(([, , status]) => status))
})

test('a hold that can never fit has no time to try again, also if it is refused under the lock', async () => {
  const quota = fixture.hf.quota({ name: fresh(), limit: 5, per: 'lifetime' })
  await quota.hold('k', 5, { operationId: fresh(), ttl: '1 h' })
  await fixture.observer.query(
    `UPDATE holdfast.balance b SET due_at = '2026-01-01' FROM holdfast.account a
     WHERE a.id = b.account AND a.book = $1`,
    [quota.name],
  )
  const refused = await quota.hold('k', 6, { operationId: fresh(), ttl: '2 h' })
  expect(refused).toMatchObject({ ok: false, reason: 'insufficient', retryAt: undefined })
})

test('a set leaves out what would not be exact as a JavaScript number', async () => {
  const [scope, key] = [fresh(), fresh()]
  const credit = (amount: number, allowance: string): RawLine => ({
    ...honestLine(scope, key, fresh()),
    amount: String(amount),
    allowance,
  })
  await send(credit(Number.MAX_SAFE_INTEGER - 10, '0'))
  const done = async (...lines: RawLine[]): Promise<number> =>
    await callApplyPlain(fixture.pool, lines)
  expect(await done(credit(6, '0'), credit(5, '0'))).toBe(0)
  expect(await done(credit(5, '6'))).toBe(0)
  expect(await done(credit(3, '5'), credit(2, '5'))).toBe(2)
  expect(await done(credit(1, '5'))).toBe(0)
  expect(await done(credit(5, '0'))).toBe(1)
  expect(await done(credit(1, '0'))).toBe(0)
})
