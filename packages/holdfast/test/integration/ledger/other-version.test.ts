/** Functions in the database that answer otherwise than this version expects. */
import { expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()

test.each([
  ['nothing', 'NULL::text'],
  ['too few fields', "'1,0'"],
  ['a line that was not asked for', "'7,0,1,0,1,0,5,0'"],
  ['a refusal without a reason', "'1,9,1,0,1,0,5,0'"],
])('an answer of %s is not taken for a verdict', async (_, answer) => {
  const { hf, observer } = fixture
  const quota = hf.quota({ name: 'misunderstood', limit: 5, per: 'lifetime' })
  const consume = async (): Promise<unknown> =>
    await quota.consume(fresh(), 1, { operationId: fresh() })
  await observer.query('ALTER FUNCTION holdfast.apply_debit RENAME TO apply_debit_real')
  const { rows } = await observer.query<{ types: string }>(
    `SELECT pg_get_function_identity_arguments('holdfast.apply_debit_real'::regproc) AS types`,
  )
  await observer.query(
    `CREATE FUNCTION holdfast.apply_debit(${rows[0]?.types}) RETURNS text LANGUAGE sql AS $$ SELECT ${answer} $$`,
  )
  try {
    await expect(consume()).rejects.toMatchObject({ code: 'LEDGER_ANSWER_UNREADABLE' })
  } finally {
    await observer.query('DROP FUNCTION holdfast.apply_debit')
    await observer.query('ALTER FUNCTION holdfast.apply_debit_real RENAME TO apply_debit')
  }
  // The control: with the function of this version it is one.
  expect(await consume()).toMatchObject({ ok: true })
})
