import { barrier } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import type { PreparedLine } from '../../../src/ledger/book.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import type { Quota } from '../../../src/quota/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })

type Limit = Quota<unknown, number>
let limits: { key: Limit; team: Limit; organisation: Limit }
beforeAll(() => {
  const of = (name: string, limit: number): Limit =>
    fixture.hf.quota({ name, limit, per: 'month' }) as Limit
  limits = { key: of('key', 3), team: of('team', 4), organisation: of('organisation', 5) }
})

interface Caller {
  readonly key: string
  readonly team: string
  readonly organisation: string
}

const caller = (organisation: string, team = fresh()): Caller => ({
  key: fresh(),
  team,
  organisation,
})

async function linesOf(who: Caller, cost: number): Promise<PreparedLine[]> {
  return [
    await limits.key.line(who.key, cost),
    await limits.team.line(who.team, cost),
    await limits.organisation.line(who.organisation, cost),
  ]
}

async function call(who: Caller, cost: number, operation = once()): Promise<Verdict<number>> {
  return await fixture.hf.ledger.apply(await linesOf(who, cost), {
    ...operation,
    scope: who.organisation,
  })
}

async function used(who: Caller): Promise<Record<string, number>> {
  const { rows } = await fixture.observer.query<{ book: string; used: number }>(
    `SELECT a.book, (b.debited + b.held - b.credited)::int AS used
     FROM holdfast.account a JOIN holdfast.balance b ON b.bucket = a.bucket AND b.account = a.id
     WHERE a.key = ANY ($1)`,
    [[who.key, who.team, who.organisation]],
  )
  return Object.fromEntries(rows.map((row) => [row.book, row.used]))
}

describe('several limits in one step', () => {
  test('are all charged', async () => {
    const who = caller(fresh())
    expect(await call(who, 2)).toMatchObject({
      ok: true,
      lines: [
        { book: 'key', available: 1 },
        { book: 'team', available: 2 },
        { book: 'organisation', available: 3 },
      ],
    })
    expect(await used(who)).toEqual({ key: 2, team: 2, organisation: 2 })
  })

  test.each(['without a lock', 'under the lock'])(
    'a rate that was never used does not block beside one that does, told %s',
    async (told) => {
      const rate = fixture.hf.quota({ name: 'rate', limit: 6, rate: '1 h' })
      const total = fixture.hf.quota({ name: 'total', limit: 3, per: 'month' })
      const [user, scope] = [fresh(), fresh()]
      await total.consume(user, 2, { ...once(), scope })
      if (told === 'under the lock') {
        // Something is due, so nothing can be said before it is booked.
        await total.hold(user, 1, { ...once(), scope, ttl: '1 h' })
        await fixture.observer.query(
          `WITH a AS (SELECT bucket, id FROM holdfast.account WHERE scope = $1), h AS (
             UPDATE holdfast.hold h SET expires_at = now() FROM a WHERE h.account = a.id
           )
           UPDATE holdfast.balance b SET due_at = now() FROM a WHERE b.account = a.id`,
          [scope],
        )
      }
      const lines = [await rate.line(user, 2), await total.line(user, 2)]
      expect(await fixture.hf.ledger.apply(lines, { ...once(), scope })).toMatchObject({
        ok: false,
        book: 'total',
        lines: [
          { book: 'rate', available: 6, refusal: undefined },
          { book: 'total', available: 1, refusal: 'insufficient' },
        ],
      })
    },
  )

  test('the one that blocks is named, whichever it is, and nothing is charged', async () => {
    const organisation = fresh()
    const [ann, bob] = [caller(organisation), caller(organisation)]
    const cid = { ...caller(organisation), team: ann.team }
    await call(ann, 3)
    expect(await call(ann, 1)).toMatchObject({ ok: false, book: 'key', key: ann.key, available: 0 })
    expect(await call(cid, 2)).toMatchObject({
      ok: false,
      book: 'team',
      key: ann.team,
      available: 1,
    })
    expect(await call(bob, 3)).toMatchObject({
      ok: false,
      reason: 'insufficient',
      book: 'organisation',
      key: organisation,
      available: 2,
      lines: [
        { book: 'key', refusal: undefined },
        { book: 'team', refusal: undefined },
        { book: 'organisation', refusal: 'insufficient' },
      ],
    })
    expect(await used(bob)).toEqual({ organisation: 3 })
    expect(await used(cid)).toEqual({ team: 3, organisation: 3 })
  })

  test('control: one after the other leaves the first charged when the second refuses', async () => {
    const organisation = fresh()
    await call(caller(organisation), 3)
    const who = caller(organisation)
    const options = (): { operationId: string; scope: string } => ({
      ...once(),
      scope: organisation,
    })
    expect(await limits.key.consume(who.key, 3, options())).toMatchObject({ ok: true })
    expect(await limits.organisation.consume(organisation, 3, options())).toMatchObject({
      ok: false,
    })
    expect(await used(who)).toMatchObject({ key: 3 })
  })

  test('hold with all callers at once, whatever the order of the lines', async () => {
    const organisation = fresh()
    const callers = Array.from({ length: 12 }, () => caller(organisation))
    const start = barrier(48)
    const verdicts = await Promise.all(
      Array.from({ length: 48 }, async (_, n) => {
        const lines = await linesOf(callers[n % 12] as Caller, 1)
        const hf = n % 3 === 0 ? fixture.create({ ledger: { coalesce: false } }) : fixture.hf
        await start()
        return await hf.ledger.apply(n % 2 === 0 ? lines : lines.toReversed(), {
          ...once(),
          scope: organisation,
        })
      }),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(5)
    const totals = await Promise.all(callers.map(used))
    expect(totals.reduce((sum, { key = 0 }) => sum + key, 0)).toBe(5)
    expect(totals[0]).toMatchObject({ organisation: 5 })
  })

  test('are repeated as one', async () => {
    const [who, operation] = [caller(fresh()), once()]
    const first = await call(who, 2, operation)
    expect(await call(who, 2, operation)).toEqual({ ...first, replayed: true })
    expect(await call(who, 1, operation)).toMatchObject({ ok: false, reason: 'conflict' })
    expect(await used(who)).toEqual({ key: 2, team: 2, organisation: 2 })
  })

  test('a day and a month: the one that blocks says when to try again', async () => {
    const day = fixture.hf.quota({ name: 'day', limit: 2, per: 'day' })
    const month = fixture.hf.quota({ name: 'month', limit: 3, per: 'month' })
    const life = fixture.hf.quota({ name: 'life', limit: 100, per: 'lifetime' })
    const [one, other] = [fresh(), fresh()]
    const use = async (key: string, cost: number): Promise<Verdict<number>> =>
      await fixture.hf.ledger.apply(
        [await life.line(key, cost), await month.line(key, cost), await day.line(key, cost)],
        { ...once(), scope: key },
      )
    await use(one, 2)
    const byDay = await use(one, 1)
    const byMonth = await use(other, 4)
    expect(byDay).toMatchObject({ ok: false, book: 'day' })
    expect(byMonth).toMatchObject({ ok: false, book: 'month', retryAt: undefined })
    const { rows } = await fixture.observer.query(
      "SELECT window_end AS end FROM holdfast.account WHERE book = 'day' AND key = $1",
      [one],
    )
    expect(byDay).toMatchObject({ retryAt: rows[0].end })
  })

  test('of different kinds: a rate, a rolling and a calendar window', async () => {
    const rate = fixture.hf.quota({ name: 'mix-rate', limit: 60, rate: '1 h', burst: 2 })
    const rolling = fixture.hf.quota({ name: 'mix-rolling', limit: 3, rolling: '1 h' })
    const week = fixture.hf.quota({ name: 'mix-week', limit: 9, per: 'week' })
    const key = fresh()
    const use = async (cost: number, operation = once()): Promise<Verdict<number>> =>
      await fixture.hf.ledger.apply(
        [await week.line(key, cost), await rate.line(key, cost), await rolling.line(key, cost)],
        { ...operation, scope: key },
      )
    const operation = once()
    expect(await use(2, operation)).toMatchObject({ ok: true })
    expect(await use(2, operation)).toMatchObject({ ok: true, replayed: true })
    expect(await use(1)).toMatchObject({ ok: false, book: 'mix-rate', retryAt: expect.any(Date) })
    expect(await rolling.consume(key, 1, once())).toMatchObject({ ok: true, available: 0 })
    expect(await week.consume(key, 7, once())).toMatchObject({ ok: true, available: 0 })
  })
})

describe('equal keys of one operation', () => {
  test('are one line: what is checked is their sum', async () => {
    const quota = fixture.hf.quota({ name: 'merged', limit: 5, per: 'month' })
    const key = fresh()
    const twice = async (...costs: number[]): Promise<Verdict<number>> =>
      await fixture.hf.ledger.apply(
        await Promise.all(costs.map((cost) => quota.line(key, cost))),
        once(),
      )
    expect(await twice(3, 3)).toMatchObject({ ok: false, available: 5 })
    expect(await twice(2, 3)).toMatchObject({
      ok: true,
      available: 0,
      sequence: 1,
      lines: [{ available: 0 }],
    })
  })

  test('and their sum is an amount like any other', async () => {
    const quota = fixture.hf.quota({ name: 'merged-large', limit: 1, per: 'month' })
    const line = await quota.line(fresh(), 2n ** 62n - 1n)
    await expect(fixture.hf.ledger.apply([line, line], once())).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_INVALID',
    })
  })
})

describe('scopes', () => {
  test('are not mixed by accident', async () => {
    const lines = [await limits.key.line(fresh(), 1), await limits.team.line(fresh(), 1)]
    await expect(fixture.hf.ledger.apply(lines, once())).rejects.toMatchObject({
      code: 'LEDGER_SCOPES',
    })
    expect(await fixture.hf.ledger.apply(lines, { ...once(), acrossScopes: true })).toMatchObject({
      ok: true,
    })
  })

  test('an operation without lines is refused', async () => {
    await expect(fixture.hf.ledger.apply([], once())).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })
})

describe('a hold over several limits', () => {
  async function hold(who: Caller, estimate: number): Promise<string> {
    const ttl = '1 min'
    const verdict = await fixture.hf.ledger.apply(
      [
        await limits.key.line(who.key, estimate, { ttl }),
        await limits.organisation.line(who.organisation, estimate, { ttl }),
      ],
      { ...once(), scope: who.organisation },
    )
    return (verdict.ok && verdict.holdId) as string
  }

  test('is settled and released as one', async () => {
    const who = caller(fresh())
    const first = await hold(who, 2)
    expect(await used(who)).toEqual({ key: 2, organisation: 2 })
    expect(await limits.key.settle(first, 1)).toMatchObject({ ok: true, lines: [{}, {}] })
    expect(await limits.key.settle(first, 1)).toMatchObject({ ok: true, replayed: true })
    expect(await used(who)).toEqual({ key: 1, organisation: 1 })
    const second = await hold(who, 2)
    expect(await limits.organisation.release(second)).toMatchObject({ ok: true })
    expect(await used(who)).toEqual({ key: 1, organisation: 1 })
    expect(await limits.key.settle(second, 1)).toMatchObject({ ok: false, state: 'released' })
  })

  test('may not span scopes', async () => {
    const line = { ttl: '1 min' } as const
    await expect(
      fixture.hf.ledger.apply(
        [await limits.key.line(fresh(), 1, line), await limits.team.line(fresh(), 1, line)],
        { ...once(), acrossScopes: true },
      ),
    ).rejects.toMatchObject({ code: 'LEDGER_SCOPES' })
  })
})

test('a refund over several limits gives back all of them', async () => {
  const [who, taken] = [caller(fresh()), once()]
  await call(who, 3, taken)
  const back = async (amount: number): Promise<Verdict<number>> => {
    const of = taken.operationId
    return await fixture.hf.ledger.apply(
      [
        await limits.key.line(who.key, amount, { of }),
        await limits.team.line(who.team, amount, { of }),
        await limits.organisation.line(who.organisation, amount, { of }),
      ],
      { ...once(), scope: who.organisation },
    )
  }
  expect(await back(2)).toMatchObject({ ok: true })
  expect(await used(who)).toEqual({ key: 1, team: 1, organisation: 1 })
  expect(await back(2)).toMatchObject({ ok: false, reason: 'over-refund' })
  expect(await used(who)).toEqual({ key: 1, team: 1, organisation: 1 })
})
