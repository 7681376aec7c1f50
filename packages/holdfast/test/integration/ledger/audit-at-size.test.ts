/** An audit must not grow with the square of an account's history, whatever plan suits its statistics. */
import { expect, test } from 'vitest'
import { isHostile } from '../../support/hostile-database.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser } from '../../support/ledger-past.ts'

const fixture = ledgerFixture()
const grants = 15_000

/** One account with many grants, each used up by a hold that was settled, in statements that add up. */
const past = `
  INSERT INTO holdfast.account (bucket, id, book, key, scope)
  VALUES (holdfast.bucket_of('rich'), holdfast.key_account('rich', 'credits', 'rich'), 'credits', 'rich', 'rich');
  INSERT INTO holdfast.balance (bucket, account, credited, debited, seq, moved_at, granted)
  SELECT bucket, id, ${grants}, ${grants}, ${grants}, now(), true FROM holdfast.account;
  INSERT INTO holdfast.credit_grant (bucket, account, id, priority, ordinal, amount, remaining, empty,
    effective_at, expires_at, state, operation_id)
  SELECT bucket, id, md5('grant' || n)::uuid, 0, n, 1, 0, true, now(), 'infinity', 1, 'x'
  FROM holdfast.account, generate_series(1, ${grants}) n;
  INSERT INTO holdfast.hold (bucket, id, account, amount, settled, state, expires_at, made_seq, ended_at, seq,
    operation_id)
  SELECT bucket, md5('hold' || n)::uuid, id, 1, 1, 1, now(), n, now(), n, 'x'
  FROM holdfast.account, generate_series(1, ${grants}) n;
  INSERT INTO holdfast.allocation (bucket, account, seq, ordinal, grant_id, amount)
  SELECT bucket, id, n, 1, md5('grant' || n)::uuid, 1
  FROM holdfast.account, generate_series(1, ${grants}) n`

const transfers = 15_000

/** As many transfers between two scopes: both lines are remembered in the bucket of one of them. */
const given = `
  INSERT INTO holdfast.account (bucket, id, book, key, scope)
  SELECT holdfast.bucket_of(who), holdfast.key_account(who, 'credits', who), 'credits', who, who
  FROM unnest(ARRAY['payer', 'payee']) who;
  INSERT INTO holdfast.movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited, held,
    allowance, operation_id)
  SELECT bucket, CASE key WHEN 'payer' THEN 15 ELSE 16 END, id, n, now(), 0, 0, 0, 0, 0, 0, 0, 'x'
  FROM holdfast.account, generate_series(1, ${transfers}) n WHERE key IN ('payer', 'payee');
  INSERT INTO holdfast.operation (bucket, owner, id, line, kind, account, amount, seq, at)
  SELECT p.bucket, p.id, md5('transfer' || n)::uuid, CASE a.key WHEN 'payer' THEN 0 ELSE 1 END,
    CASE a.key WHEN 'payer' THEN 15 ELSE 16 END, a.id, 1, n, now()
  FROM holdfast.account p, holdfast.account a, generate_series(1, ${transfers}) n
  WHERE p.key = 'payer' AND a.key IN ('payer', 'payee')`

const grantsWrong = 'SELECT count(*)::int AS found FROM holdfast.check_grants()'
const operationsWrong =
  'SELECT found::int FROM holdfast.audit_operations(0::smallint, 4095::smallint, 10)'

/** What it finds within the time; rejects with 57014 if it takes longer. */
async function checked(check: string, withinMs: number): Promise<number> {
  await fixture.observer.query('BEGIN')
  try {
    await fixture.observer.query(`SET LOCAL statement_timeout = ${withinMs}`)
    const { rows } = await fixture.observer.query(check)
    return rows[0].found as number
  } finally {
    await fixture.observer.query('ROLLBACK')
  }
}

// The settings of a hostile database forbid its plan.
test.skipIf(isHostile)('many grants and holds of one account are checked in one pass', async () => {
  await asSuperuser(fixture.observer, past)
  await fixture.observer.query('ANALYZE')
  expect(await checked(grantsWrong, 10_000)).toBe(0)

  // The control: a range of buckets that is not known while planning is believed to hold few rows.
  const call = 'holdfast.check_grants(smallint, smallint)'
  await fixture.observer.query(`ALTER FUNCTION ${call} RESET enable_mergejoin`)
  await expect(checked(grantsWrong, 1_500)).rejects.toMatchObject({ code: '57014' })
})

test.skipIf(isHostile)('many operations over several scopes are checked in one pass', async () => {
  await asSuperuser(fixture.observer, given)
  await fixture.observer.query('ANALYZE')
  expect(await checked(operationsWrong, 10_000)).toBe(0)

  const call = 'holdfast.audit_operations(smallint, smallint, integer)'
  await fixture.observer.query(`ALTER FUNCTION ${call} RESET enable_nestloop`)
  await expect(checked(operationsWrong, 1_500)).rejects.toMatchObject({ code: '57014' })
})
