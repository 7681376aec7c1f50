/** Books, accounts and holds as an observer tells them, to the least privileged role there is. */
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { Observer } from '../../../src/observe/observer.ts'
import { appRole } from '../../support/app-role.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { reportsOn } from '../../support/reports.ts'

const fixture = ledgerFixture()
const role = appRole(fixture)
let reports: Pick<Observer, 'books' | 'account' | 'holds'>

beforeAll(() => {
  reports = reportsOn(fromPg(role.pool))
})

describe('an account', () => {
  test('with its holds, grants and movements, newest first, and no drift', async () => {
    const key = fresh()
    const credits = fixture.hf.credits({ name: 'credits' })
    await credits.grant(key, 100, { operationId: fresh(), priority: 1 })
    await credits.spend(key, 30, { operationId: fresh(), note: { why: 'ride' } })
    const held = await credits.hold(key, 20, { operationId: fresh(), ttl: '1 h' })
    expect(held.ok).toBe(true)
    const report = await reports.account({ book: 'credits', key })
    expect(report.accounts).toEqual([
      expect.objectContaining({
        book: 'credits',
        key,
        scope: key,
        credited: '100',
        debited: '30',
        held: '20',
        available: '50',
        sequence: '3',
        drift: '0',
        limitIsSet: false,
        movedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z$/),
      }),
    ])
    expect(report.movements.map(({ kind, available }) => [kind, available])).toEqual([
      ['hold', '50'],
      ['debit', '70'],
      ['grant', '100'],
    ])
    expect(report.movements[1]).toMatchObject({ debit: '30', note: '{"why":"ride"}' })
    expect(report.grants).toEqual([
      expect.objectContaining({ amount: '100', remaining: '50', priority: 1 }),
    ])
    expect(report.holds).toEqual([
      expect.objectContaining({ amount: '20', overdue: false, key, book: 'credits' }),
    ])
    expect(report.next).toBeUndefined()
    expect(JSON.parse(JSON.stringify(report))).toEqual(report)
  })

  test('page by page, over windows', async () => {
    const key = fresh()
    const calls = fixture.hf.quota({ name: 'calls', limit: 10, per: 'day' })
    await calls.consume(key, 1, { operationId: fresh() })
    await calls.consume(key, 2, { operationId: fresh() })
    const first = await reports.account({ book: 'calls', key }, { movements: 1 })
    expect(first.movements).toMatchObject([{ debit: '2', windowStart: expect.any(String) }])
    expect(first.accounts).toMatchObject([{ available: '7', windowStart: expect.any(String) }])
    const second = await reports.account(
      { book: 'calls', key },
      { movements: 1, before: first.next as string },
    )
    expect(second.movements).toMatchObject([{ debit: '1' }])
    expect(second.next).toBeUndefined()
  })

  test('nobody uses is empty; a scope of its own is another account', async () => {
    const key = fresh()
    const calls = fixture.hf.credits({ name: 'parts' })
    await calls.grant(key, 5, { operationId: fresh(), scope: 'north' })
    expect(await reports.account({ book: 'parts', key })).toEqual({
      accounts: [],
      holds: [],
      grants: [],
      movements: [],
    })
    const report = await reports.account({ book: 'parts', key, scope: 'north' })
    expect(report.accounts).toMatchObject([{ available: '5', scope: 'north' }])
  })

  test.each([
    ['credited = credited + 7', '7'],
    ['debited = debited + 3, credited = credited + 3', '6'],
    ['seq = seq + 1', '1'],
    ['allowance = allowance + 2', '2'],
  ])('whose counters were changed behind the movements drifts: %s', async (change, drift) => {
    const key = fresh()
    await fixture.hf.credits({ name: 'drifting' }).grant(key, 10, { operationId: fresh() })
    const look = async (): Promise<string | undefined> =>
      (await reports.account({ book: 'drifting', key })).accounts[0]?.drift
    expect(await look()).toBe('0')
    await asSuperuser(
      fixture.observer,
      `UPDATE holdfast.balance b SET ${change} FROM holdfast.account a
       WHERE a.bucket = b.bucket AND a.id = b.account AND a.key = '${key}'`,
    )
    expect(await look()).toBe(drift)
  })

  test('whose movements were dropped is compared with its checkpoint', async () => {
    const key = fresh()
    await fixture.hf.credits({ name: 'old' }).grant(key, 10, { operationId: fresh() })
    const where = `FROM holdfast.account a WHERE a.bucket = x.bucket AND a.id = x.account AND a.key = '${key}'`
    await asSuperuser(
      fixture.observer,
      `INSERT INTO holdfast.checkpoint (bucket, account, seq, at, credited, debited, held, allowance)
       SELECT x.bucket, x.account, x.seq, x.moved_at, x.credited, x.debited, x.held, x.allowance
       FROM holdfast.balance x, holdfast.account a WHERE a.bucket = x.bucket AND a.id = x.account AND a.key = '${key}';
       SET session_replication_role = replica;
       DELETE FROM holdfast.movement x USING ${where.slice(5)}`,
    )
    const { accounts, movements } = await reports.account({ book: 'old', key })
    expect(movements).toEqual([])
    expect(accounts).toMatchObject([{ drift: '0', credited: '10' }])
  })

  test.each([
    ['in one snapshot', {}, true],
    ['the control: by statement', { isolation: 'read committed' }, false],
  ] as const)('%s, a balance fits the movements while others write', async (_, settings, fits) => {
    const key = fresh()
    const credits = fixture.hf.credits({ name: 'busy' })
    await credits.grant(key, 1, { operationId: fresh() })
    const driver = fromPg(role.pool)
    let statements = 0
    const busy: typeof driver = {
      ...driver,
      transaction: (body, given) =>
        driver.transaction(
          (transaction) =>
            body({
              ...transaction,
              state: () => transaction.state(),
              query: async (statement) => {
                // The settings come first, then the balance; right after it somebody writes.
                statements += 1
                if (statements === 3) await credits.grant(key, 1, { operationId: fresh() })
                return await transaction.query(statement)
              },
            }),
          { ...given, opening: undefined, ...settings },
        ),
    }
    const { accounts, movements } = await reportsOn(busy).account({ book: 'busy', key })
    expect(statements).toBe(4)
    expect(accounts[0]?.sequence === movements[0]?.sequence).toBe(fits)
  })

  test('is refused by a name that cannot be one, and by a wrong page', async () => {
    await expect(reports.account({ book: '', key: 'x' })).rejects.toMatchObject({
      code: 'LEDGER_NAME_INVALID',
    })
    const bad = [{ before: 'x' }, { movements: 0 }, { movements: 1_001 }]
    for (const options of bad) {
      await expect(reports.account({ book: 'b', key: 'k' }, options)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
  })
})

describe('holds', () => {
  test('overdue first; a book in which nobody sweeps is told, one that is swept is not', async () => {
    const [late, open] = [fresh(), fresh()]
    const book = fixture.hf.credits({ name: 'leaking' })
    for (const key of [late, open]) {
      await book.grant(key, 10, { operationId: fresh() })
      await book.hold(key, 4, { operationId: fresh(), ttl: '1 h' })
    }
    const before = await leaking()
    expect(before).toMatchObject({ accounts: 2, openHolds: 2, overdueHolds: 0, advice: [] })
    expect(before).not.toHaveProperty('oldestOverdueMs')
    await asSuperuser(
      fixture.observer,
      `UPDATE holdfast.hold h SET expires_at = expires_at - interval '2 hours'
       FROM holdfast.account a WHERE a.bucket = h.bucket AND a.id = h.account AND a.key = '${late}';
       UPDATE holdfast.balance b SET due_at = due_at - interval '2 hours'
       FROM holdfast.account a WHERE a.bucket = b.bucket AND a.id = b.account AND a.key = '${late}'`,
    )
    const [first, second] = await reports.holds()
    expect(first).toMatchObject({ key: late, overdue: true, amount: '4', book: 'leaking' })
    expect(first?.overdueMs).toBeGreaterThan(3_500_000)
    expect(second?.overdueMs).toBeUndefined()
    expect(await leaking()).toMatchObject({
      overdueHolds: 1,
      advice: [{ code: 'hold-leak', what: expect.stringMatching(/^1 hold is overdue.*1 h/) }],
    })
    await fixture.hf.ledger.sweep()
    expect(await leaking()).toMatchObject({ openHolds: 1, overdueHolds: 0, advice: [] })
  })

  async function leaking(): Promise<unknown> {
    return (await reports.books()).find(({ book }) => book === 'leaking')
  }
})

test('without the schema it is said what to do', async () => {
  const { createReports } = await import('../../../src/observe/reports.ts')
  const nowhere = createReports(fromPg(role.pool), {
    schema: 'nowhere',
    claims: [],
    statementTimeoutMs: 1_000,
  })
  const calls = [
    () => nowhere.books(),
    () => nowhere.account({ book: 'b', key: 'k' }),
    () => nowhere.holds(),
    () => nowhere.leases(),
    () => nowhere.schedules(),
  ]
  for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  expect(await nowhere.claims()).toEqual([])
})
