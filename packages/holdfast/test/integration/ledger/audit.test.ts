/** What an audit finds. Every check is shown to go red: the data is damaged as only a superuser can. */
import { waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Audit, AuditProblem } from '../../../src/ledger/upkeep/audit.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const operation = (): { operationId: string } => ({ operationId: fresh() })

function tokens(): ReturnType<typeof fixture.hf.quota<'number'>> {
  return fixture.hf.quota({ name: 'tokens', limit: 1_000, per: 'lifetime' })
}

/** A key with a history: debits, a hold of every fate, a refund, an adjustment, a limit. */
async function lively(): Promise<string> {
  const key = fresh()
  const quota = tokens()
  const bought = operation()
  await quota.consume(key, 100, bought)
  await quota.refund(key, 30, { ...operation(), of: bought.operationId })
  const holds = await Promise.all(
    [1, 2, 3].map((amount) => quota.hold(key, amount * 10, { ...operation(), ttl: '1 h' })),
  )
  const [settled, released] = holds.map((verdict) => (verdict.ok ? verdict.holdId : '') as string)
  await quota.settle(settled as string, 15)
  await quota.release(released as string)
  await quota.adjust(key, -5, { ...operation(), reason: 'miscounted' })
  await quota.setLimit(key, 2_000, operation())
  await quota.consume(key, 50, operation())
  return key
}

const of = (audit: Audit, key: string): AuditProblem[] =>
  audit.problems.filter((problem) => problem.key === key)

const checks = (audit: Audit, key: string): string[] =>
  [...new Set(of(audit, key).map(({ check }) => check))].toSorted()

/** The account of a key, as a condition on the table with this alias. */
const its = (alias: string, key: string): string =>
  `(${alias}.bucket, ${alias}.account) IN (SELECT bucket, id FROM holdfast.account WHERE key = '${key}')`

async function damaged(key: string, statements: string): Promise<string[]> {
  await asSuperuser(fixture.observer, statements)
  return checks(await fixture.hf.ledger.audit({ list: 1_000 }), key)
}

describe('a ledger that is as it should be', () => {
  test('has no problems, whatever happened to it', async () => {
    await Promise.all([lively(), lively(), lively()])
    const monthly = fixture.hf.quota({ name: 'monthly', limit: 100, per: 'month' })
    const rolling = fixture.hf.quota({ name: 'rolling', limit: 100, rolling: '1 h' })
    const rate = fixture.hf.quota({ name: 'rate', limit: 100, rate: '1 min' })
    const key = fresh()
    await monthly.setLimit(key, 10, operation())
    await monthly.consume(key, 10, operation())
    await rolling.consume(key, 5, operation())
    await rate.consume(key, 5, operation())
    // Lines in two scopes under one operation id, which only one of them remembers.
    const daily = fixture.hf.quota({ name: 'daily', limit: 100, per: 'day' })
    const across = await fixture.hf.ledger.apply(
      [await monthly.line(fresh(), 1), await daily.line(fresh(), 1)],
      {
        ...operation(),
        acrossScopes: true,
      },
    )
    expect(across.ok).toBe(true)

    const seen: number[] = []
    const audit = await fixture.hf.ledger.audit({ onProgress: ({ done }) => seen.push(done) })
    const { rows } = await fixture.observer.query(
      `SELECT (SELECT count(*)::int FROM holdfast.movement) AS movements,
              (SELECT count(*)::int FROM holdfast.balance) AS accounts`,
    )
    expect(audit).toMatchObject({ found: 0, problems: [], ...rows[0] })
    expect(Math.abs(audit.snapshotAt.getTime() - Date.now())).toBeLessThan(60_000)
    expect(seen.at(-1)).toBe(4096)
    expect(seen.length).toBeGreaterThan(4)
    expect(seen).toEqual(seen.toSorted((one, other) => one - other))
  })

  test('is audited at one moment: what is committed meanwhile is not part of it', async () => {
    const key = await lively()
    const before = await fixture.hf.ledger.audit()
    // After the snapshot is taken, the first range has to wait here.
    const blocker = await callerTransaction(fixture)
    await blocker.query('LOCK TABLE holdfast.checkpoint IN ACCESS EXCLUSIVE MODE')
    const audit = fixture.hf.ledger.audit()
    await waitUntil('the audit waits', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_locks WHERE relation = 'holdfast.checkpoint'::regclass AND NOT granted`,
      )
      return rows.length > 0 || undefined
    })
    await tokens().consume(key, 1, operation())
    await blocker.query('COMMIT')
    expect(await audit).toMatchObject({ found: 0, movements: before.movements })
    expect((await fixture.hf.ledger.audit()).movements).toBe(before.movements + 1)
  })

  test('cannot be changed by an audit, and an abort ends it', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const audit = fixture.hf.ledger.audit({
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    })
    await expect(audit).rejects.toBe(reason)
    const { rows } = await fixture.observer.query(
      `SELECT count(*)::int AS open FROM pg_stat_activity
       WHERE datname = current_database() AND state = 'idle in transaction'`,
    )
    expect(rows[0].open).toBe(0)
  })
})

describe('each kind of damage is named', () => {
  let key: string
  beforeAll(async () => {
    key = await lively()
  })

  const cases: [what: string, damage: (key: string) => string, found: string[]][] = [
    [
      'a movement that was deleted',
      (k) => `DELETE FROM holdfast.movement m WHERE ${its('m', k)} AND seq = 2`,
      ['chain', 'gap', 'movement-missing'],
    ],
    [
      'the last movement deleted',
      (k) => `
        DELETE FROM holdfast.movement m USING holdfast.balance b
        WHERE b.bucket = m.bucket AND b.account = m.account AND b.seq = m.seq AND ${its('m', k)}`,
      ['movement-missing', 'projection'],
    ],
    [
      'an amount that was changed',
      (k) => `UPDATE holdfast.movement m SET debit = debit + 1 WHERE ${its('m', k)} AND seq = 1`,
      ['chain'],
    ],
    [
      'an after-balance that was changed',
      (k) =>
        `UPDATE holdfast.movement m SET debited = debited - 7 WHERE ${its('m', k)} AND seq = 3`,
      ['chain'],
    ],
    [
      'a balance that was changed',
      (k) => `UPDATE holdfast.balance b SET debited = 0 WHERE ${its('b', k)}`,
      ['projection'],
    ],
    [
      'a limit that was changed past set_limit',
      (k) => `UPDATE holdfast.balance b SET allowance = 1000000 WHERE ${its('b', k)}`,
      ['projection'],
    ],
    [
      'time that went back',
      (k) => `
        UPDATE holdfast.movement m SET at = at - interval '1 min' WHERE ${its('m', k)} AND kind = 4`,
      ['time'],
    ],
    [
      'a bound that was crossed',
      (k) => `UPDATE holdfast.movement m SET allowance = 10 WHERE ${its('m', k)} AND seq = 1`,
      ['bound'],
    ],
    [
      'an operation that was applied twice',
      (k) => `
        WITH again AS (
          INSERT INTO holdfast.movement
          SELECT m.bucket, m.kind, m.account, b.seq + 1, b.moved_at, m.credit, m.debit, m.hold,
            b.credited, b.debited + m.debit, b.held, b.allowance, m.operation_id
          FROM holdfast.balance b JOIN holdfast.movement m USING (bucket, account)
          WHERE ${its('b', k)} AND m.seq = 1
          RETURNING *
        )
        UPDATE holdfast.balance b SET seq = a.seq, debited = a.debited
        FROM again a WHERE a.bucket = b.bucket AND a.account = b.account`,
      ['operation-missing'],
    ],
    [
      'an operation id that points to another movement',
      (k) => `UPDATE holdfast.operation o SET seq = 2 WHERE ${its('o', k)} AND seq = 1`,
      ['operation-differs', 'operation-missing'],
    ],
    [
      'a hold that belongs to no movement',
      (k) => `
        INSERT INTO holdfast.hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
        SELECT bucket, gen_random_uuid(), id, 5, now() + interval '1 h', 999, 'nobody'
        FROM holdfast.account WHERE key = '${k}'`,
      ['held', 'hold-orphan'],
    ],
    [
      'a hold that was deleted',
      (k) => `DELETE FROM holdfast.hold h WHERE ${its('h', k)} AND state = 0`,
      ['held', 'hold-missing'],
    ],
    [
      'a hold that was opened again',
      (k) => `UPDATE holdfast.hold h SET state = 0 WHERE ${its('h', k)} AND state = 2`,
      ['held', 'hold-state'],
    ],
    [
      'a hold that ended twice',
      (k) => `
        WITH again AS (
          INSERT INTO holdfast.movement
          SELECT b.bucket, 5, b.account, b.seq + 1, b.moved_at, 0, 0, -h.amount, b.credited,
            b.debited, b.held - h.amount, b.allowance, h.operation_id, h.id
          FROM holdfast.balance b JOIN holdfast.hold h USING (bucket, account)
          WHERE h.state = 2 AND ${its('b', k)}
          RETURNING *
        )
        UPDATE holdfast.balance b SET seq = a.seq, held = a.held
        FROM again a WHERE a.bucket = b.bucket AND a.account = b.account`,
      ['held', 'hold-twice'],
    ],
    [
      'a hold that nobody would look for in time',
      (k) => `UPDATE holdfast.balance b SET due_at = 'infinity' WHERE ${its('b', k)}`,
      ['due'],
    ],
    [
      'a balance that was deleted',
      (k) => `DELETE FROM holdfast.balance b WHERE ${its('b', k)}`,
      ['balance-missing', 'hold-orphan'],
    ],
    [
      'an account under a name that is not its own',
      (k) => `UPDATE holdfast.account SET scope = scope || 'x' WHERE key = '${k}'`,
      ['account-name'],
    ],
  ]

  test.each(cases)('%s', async (_, damage, found) => {
    const victim = await lively()
    expect(await damaged(victim, damage(victim))).toEqual(found)
  })

  test('an account whose names are lost', async () => {
    const victim = await lively()
    const { rows } = await fixture.observer.query(
      'SELECT id FROM holdfast.account WHERE key = $1',
      [victim],
    )
    await asSuperuser(fixture.observer, `DELETE FROM holdfast.account WHERE key = '${victim}'`)
    const { problems } = await fixture.hf.ledger.audit({ list: 1_000 })
    const found = problems.filter(({ account }) => account === rows[0].id)
    expect(found).toMatchObject([{ check: 'account-missing', key: undefined }])
  })

  test('and it says where: book, key, movement, hold, operation', async () => {
    const victim = await lively()
    await asSuperuser(
      fixture.observer,
      `UPDATE holdfast.movement m SET debited = debited + 1 WHERE ${its('m', victim)} AND seq = 5`,
    )
    const audit = await fixture.hf.ledger.audit({ list: 1_000 })
    expect(of(audit, victim)).toEqual([
      expect.objectContaining({
        check: 'chain',
        book: 'tokens',
        key: victim,
        scope: victim,
        sequence: '5',
        window: undefined,
      }),
    ])
    // The rest of the ledger is not accused.
    expect(checks(audit, key)).toEqual([])
  })

  test('the list is bounded, the count is not', async () => {
    const all = await fixture.hf.ledger.audit({ list: 1_000 })
    const short = await fixture.hf.ledger.audit({ list: 3 })
    expect(short.found).toBe(all.found)
    expect(short.problems).toHaveLength(3)
    expect(all.problems).toHaveLength(all.found)
  })
})
