/** Reading: balances, history, holds and points in time, without adding up and without rights. */
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Movement } from '../../../src/ledger/reads/reading.ts'
import { grants } from '../../../src/schema/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })

describe('balance', () => {
  test('is zero for a key that was never used', async () => {
    expect(await fixture.hf.ledger.balance('nothing', fresh())).toEqual({
      available: 0,
      credited: 0,
      debited: 0,
      held: 0,
      allowance: 0,
      sequence: 0,
      at: undefined,
      window: undefined,
      due: false,
    })
  })

  test('is what the last verdict said, by scope, and exact beyond 2^53', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 2n ** 60n, per: 'lifetime', amounts: 'bigint' })
    const [key, scope] = [fresh(), fresh()]
    const verdict = await quota.consume(key, 2n ** 59n, { ...operation(), scope })
    const { available, allowance, sequence } = verdict
    expect(await fixture.hf.ledger.balance(name, key, { scope, amounts: 'bigint' })).toMatchObject({
      available,
      allowance,
      sequence,
      debited: 2n ** 59n,
    })
    await expect(fixture.hf.ledger.balance(name, key, { scope })).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_UNSAFE',
    })
    expect(await fixture.hf.ledger.balance(name, key)).toMatchObject({ sequence: 0 })
  })

  test('of a book with windows is that of the current one', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'month', timeZone: 'America/Santiago' })
    const key = fresh()
    await quota.consume(key, 3, operation())
    const { window, debited } = await fixture.hf.ledger.balance(name, key)
    expect(debited).toBe(3)
    expect((window?.start as Date) <= new Date() && (window?.end as Date) > new Date()).toBe(true)
    expect((await quota.peek(key)).window).toEqual(window)
  })

  test('says that something is due, until it is booked', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'lifetime' })
    const key = fresh()
    await quota.hold(key, 4, { ...operation(), ttl: 1 })
    const due = await waitUntil('the hold is due', async () => {
      const balance = await fixture.hf.ledger.balance(name, key)
      return balance.due ? balance : undefined
    })
    expect(due).toMatchObject({ held: 4, available: 6 })
    expect(await quota.peek(key)).toMatchObject({ held: 0, available: 10 })
    expect(await fixture.hf.ledger.holds(name, key)).toMatchObject([{ amount: 4, overdue: true }])
    await quota.consume(key, 1, operation())
    expect(await fixture.hf.ledger.balance(name, key)).toMatchObject({ held: 0, due: false })
    expect(await fixture.hf.ledger.holds(name, key)).toEqual([])
  })

  test('in a transaction is what that transaction sees', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'lifetime' })
    const key = fresh()
    const tx = await callerTransaction(fixture)
    await quota.consume(tx, key, 3, operation())
    expect(await fixture.hf.ledger.balance(tx, name, key)).toMatchObject({ debited: 3 })
    expect(await quota.peek(tx, key)).toMatchObject({ used: 3 })
    expect((await fixture.hf.ledger.history(tx, name, key)).movements).toHaveLength(1)
    expect(await fixture.hf.ledger.balance(name, key)).toMatchObject({ debited: 0 })
    expect(await quota.peek(key)).toMatchObject({ used: 0 })
  })
})

describe('peek', () => {
  test.each([
    ['a calendar window', { per: 'day' }],
    ['a rolling window', { rolling: '1 h' }],
    ['a rate', { rate: '1 h' }],
  ] as const)('says of %s what a consume then finds', async (_, window) => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, ...window })
    const key = fresh()
    expect(await quota.peek(key)).toMatchObject({
      limit: 10,
      available: 10,
      used: 0,
      held: 0,
      retryAt: undefined,
      sequence: 0,
    })
    await quota.consume(key, 4, operation())
    await quota.consume(key, 3, operation())
    expect(await quota.peek(key)).toMatchObject({ available: 3, used: 7, retryAt: undefined })
    const before = await quota.peek(key, { cost: 5 })
    const refused = await quota.consume(key, 5, operation())
    expect(refused).toMatchObject({ ok: false, available: 3, retryAt: before.retryAt })
    expect(before.retryAt?.getTime()).toBeGreaterThan(Date.now())
    // What never fits has no moment at which it will.
    expect((await quota.peek(key, { cost: 11 })).retryAt).toBeUndefined()
    expect((await quota.peek(key)).sequence).toBe(2)
  })

  test('changes nothing: no account, no row, no lock', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'day' })
    const key = fresh()
    await quota.peek(key)
    const { rows } = await fixture.observer.query('SELECT FROM holdfast.account WHERE key = $1', [
      key,
    ])
    expect(rows).toEqual([])
    await quota.consume(key, 1, operation())
    const holder = await callerTransaction(fixture)
    await quota.consume(holder, key, 1, operation())
    expect(await quota.peek(key)).toMatchObject({ used: 1 })
  })
})

describe('history', () => {
  const all = async (name: string, key: string, limit: number): Promise<Movement<number>[]> => {
    const pages: Movement<number>[] = []
    let before: string | undefined
    do {
      const page = await fixture.hf.ledger.history(name, key, { limit, before })
      expect(page.movements.length).toBeLessThanOrEqual(limit)
      pages.push(...page.movements)
      before = page.next
    } while (before !== undefined)
    return pages
  }

  test.each([1, 2, 3, 7, 100])('in pages of %i is complete, newest first', async (limit) => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 100, per: 'lifetime' })
    const key = fresh()
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    for (const operationId of ids) {
      await quota.consume(key, 1, { operationId, note: { page: operationId } })
    }
    const movements = await all(name, key, limit)
    expect(movements.map(({ operationId }) => operationId)).toEqual(ids.toReversed())
    expect(movements.map(({ sequence }) => sequence)).toEqual([7, 6, 5, 4, 3, 2, 1])
    expect(movements[0]).toMatchObject({
      kind: 'debit',
      debit: 1,
      debited: 7,
      available: 93,
      note: { page: 'g' },
      window: undefined,
    })
  })

  test('a page that goes on is not disturbed by what is new', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 100, per: 'lifetime' })
    const key = fresh()
    for (let at = 0; at < 4; at += 1) await quota.consume(key, 1, operation())
    const first = await fixture.hf.ledger.history(name, key, { limit: 2 })
    await quota.consume(key, 1, operation())
    const second = await fixture.hf.ledger.history(name, key, { limit: 2, before: first.next })
    expect([...first.movements, ...second.movements].map(({ sequence }) => sequence)).toEqual([
      4, 3, 2, 1,
    ])
  })

  test('goes through the windows of a key, the newest first', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 100, per: 'month' })
    const key = fresh()
    await quota.consume(key, 1, operation())
    await quota.setLimit(key, 50, operation())
    await quota.consume(key, 1, operation())
    await pastWindow(name, key, 2)
    const movements = await all(name, key, 2)
    expect(movements.map(({ kind, sequence }) => `${kind} ${sequence}`)).toEqual([
      'debit 3',
      'limit 2',
      'debit 1',
      // A month that is over, then what was set for all months.
      'debit 2',
      'debit 1',
      'limit 1',
    ])
    const months = movements.map(({ window }) => window?.start.toISOString())
    expect(new Set(months).size).toBe(3)
  })

  test('what is not a cursor or a limit is refused', async () => {
    const ask = (options: object): Promise<unknown> =>
      fixture.hf.ledger.history('any', 'key', options)
    for (const options of [{ before: "1'; DROP" }, { limit: 0 }, { limit: 1_001 }]) {
      await expect(ask(options)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
  })
})

/** A window of two months ago with so many debits of one, as if it had been used then. */
async function pastWindow(book: string, key: string, debits: number): Promise<void> {
  await asSuperuser(
    fixture.observer,
    `WITH past AS (
       SELECT date_trunc('month', now(), 'UTC') - interval '2 months' AS since
     ), opened AS (
       INSERT INTO holdfast.account (bucket, id, book, key, scope, window_start, window_end)
       SELECT holdfast.bucket_of('${key}'),
         holdfast.window_account(holdfast.key_account('${key}', '${book}', '${key}'), since),
         '${book}', '${key}', '${key}', since, since + interval '1 month'
       FROM past
       RETURNING bucket, id, window_start
     ), balances AS (
       INSERT INTO holdfast.balance (bucket, account, debited, allowance, seq, moved_at)
       SELECT bucket, id, ${debits}, 100, ${debits}, window_start + interval '1 day' FROM opened
     )
     INSERT INTO holdfast.movement (bucket, kind, account, seq, at, credit, debit, hold, credited,
       debited, held, allowance, operation_id)
     SELECT bucket, 2, id, n, window_start + interval '1 day', 0, 1, 0, 0, n, 0, 100, 'old-' || n
     FROM opened, generate_series(1, ${debits}) n`,
  )
}

describe('a moment of the past', () => {
  test('has the balance that the last movement before it left', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 1_000, per: 'lifetime' })
    const key = fresh()
    const before = new Date(Date.now() - 3_600_000)
    for (let at = 1; at <= 9; at += 1) await quota.consume(key, at, operation())
    // One movement a second, in the past hour.
    await asSuperuser(
      fixture.observer,
      `UPDATE holdfast.movement SET at = now() - interval '30 min' + seq * interval '1 s'
       WHERE account = (SELECT id FROM holdfast.account WHERE key = '${key}');
       UPDATE holdfast.balance SET moved_at = now() - interval '30 min' + seq * interval '1 s'
       WHERE account = (SELECT id FROM holdfast.account WHERE key = '${key}')`,
    )
    const { movements } = await fixture.hf.ledger.history(name, key)
    for (const { at, sequence, debited } of movements) {
      const then = await fixture.hf.ledger.balanceAt(name, key, at)
      expect(then).toMatchObject({ sequence, debited, available: 1_000 - debited, at })
      const earlier = await fixture.hf.ledger.balanceAt(name, key, new Date(at.getTime() - 1))
      expect(earlier).toMatchObject({ sequence: sequence - 1 })
    }
    expect(await fixture.hf.ledger.balanceAt(name, key, before)).toMatchObject({ sequence: 0 })
    expect(await fixture.hf.ledger.balanceAt(name, key, new Date())).toMatchObject({ sequence: 9 })
    await expect(
      fixture.hf.ledger.balanceAt(name, key, new Date(Number.NaN)),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('of a book with windows is found in the window it belongs to', async () => {
    const name = fresh()
    const key = fresh()
    await fixture.hf.quota({ name, limit: 100, per: 'month' }).consume(key, 5, operation())
    await pastWindow(name, key, 2)
    const { movements } = await fixture.hf.ledger.history(name, key)
    const old = movements.at(-1) as Movement<number>
    const then = await fixture.hf.ledger.balanceAt(name, key, old.at)
    expect(then).toMatchObject({ debited: 2, window: old.window })
  })

  test('is refused, not guessed, if a movement is missing', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 100, per: 'lifetime' })
    const key = fresh()
    for (let at = 0; at < 3; at += 1) await quota.consume(key, 1, operation())
    await asSuperuser(
      fixture.observer,
      `DELETE FROM holdfast.movement WHERE seq = 2
       AND account = (SELECT id FROM holdfast.account WHERE key = '${key}')`,
    )
    const past = new Date(Date.now() - 3_600_000)
    await expect(fixture.hf.ledger.balanceAt(name, key, past)).rejects.toThrow(/missing/)
  })
})

describe("an application's role", () => {
  test('reads through functions and views, and nothing else', async () => {
    const role = `reader_${fresh().replaceAll('-', '')}`
    await fixture.observer.query(`CREATE ROLE ${role} LOGIN; ${grants({ role })}`)
    onTestFinished(async () => {
      await fixture.observer.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    })
    const url = new URL(fixture.database.directUrl)
    url.username = role
    const pool = new pg.Pool({ connectionString: url.href, max: 1 })
    onTestFinished(() => pool.end())
    const hf = createHoldfast(fromPg(pool))
    const name = fresh()
    const quota = hf.quota({ name, limit: 10, per: 'day' })
    const key = fresh()
    await quota.setLimit(key, 5, operation())
    await quota.consume(key, 2, operation())
    const held = await quota.hold(key, 1, { ...operation(), ttl: '1 h' })
    expect(await quota.peek(key)).toMatchObject({ limit: 5, used: 2, held: 1, available: 2 })
    expect((await hf.ledger.history(name, key)).movements).toHaveLength(4)
    expect(await hf.ledger.holds(name, key)).toMatchObject([
      { holdId: held.ok ? held.holdId : '', amount: 1 },
    ])
    expect(await hf.ledger.sweep()).toEqual({ fallen: expect.any(Number), more: false })

    const rows = async (text: string): Promise<unknown[]> => (await pool.query(text, [key])).rows
    expect(
      await rows('SELECT available, held FROM holdfast.balances WHERE key = $1 AND held > 0'),
    ).toEqual([{ available: '2', held: '1' }])
    expect(
      await rows('SELECT kind FROM holdfast.movements WHERE key = $1 ORDER BY at DESC LIMIT 1'),
    ).toEqual([{ kind: 'hold' }])
    expect(await rows('SELECT hold_id, overdue FROM holdfast.open_holds WHERE key = $1')).toEqual([
      { hold_id: held.ok ? held.holdId : '', overdue: false },
    ])
    expect(await rows('SELECT kind FROM holdfast.operations WHERE key = $1')).toHaveLength(3)

    await expect(pool.query('SELECT FROM holdfast.movement')).rejects.toMatchObject({
      code: '42501',
    })
    await expect(pool.query('DELETE FROM holdfast.movements')).rejects.toMatchObject({
      code: expect.stringMatching(/42501|55000/),
    })
    await expect(hf.ledger.audit()).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    await expect(hf.ledger.maintain()).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })

  test('the views have a word for every kind of movement', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT pg_get_functiondef('holdfast.movement_kind'::regproc) AS words,
              pg_get_viewdef('holdfast.movements'::regclass) AS movements,
              pg_get_viewdef('holdfast.operations'::regclass) AS operations`,
    )
    const words = (text: string): string | undefined => /\{[a-z,]+\}/.exec(text)?.[0]
    expect(words(rows[0].movements)).toBe(words(rows[0].words))
    expect(words(rows[0].operations)).toBe(words(rows[0].words))
  })
})
