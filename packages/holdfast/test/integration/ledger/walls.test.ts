import { expect, test } from 'vitest'
import { ledgerFixture } from '../../support/ledger-fixture.ts'

/** What no function of ours would write is refused by the tables themselves. */
const fixture = ledgerFixture()

const id = `'00000000-0000-4000-8000-000000000001'`
const account = (bucket: number): string =>
  `INSERT INTO holdfast.account (bucket, id, book, key, scope) VALUES (${bucket}, ${id}, 'b', 'k', 's')`
const balance = (columns: string, values: string): string =>
  `INSERT INTO holdfast.balance (bucket, account, ${columns}) VALUES (0, ${id}, ${values})`
const grant = (columns: string, values: string): string =>
  `INSERT INTO holdfast.credit_grant (bucket, account, id, priority, ordinal, effective_at, expires_at,
     operation_id, ${columns}) VALUES (0, ${id}, ${id}, 50, 1, now(), now(), 'o', ${values})`
const allocation = (amount: number, returned: number): string =>
  `INSERT INTO holdfast.allocation (bucket, account, seq, ordinal, amount, returned)
   VALUES (0, ${id}, 1, 1, ${amount}, ${returned})`
const movement = `INSERT INTO holdfast.movement (bucket, kind, account, seq, at, credit, debit, hold,
  credited, debited, held, allowance, operation_id)
  VALUES (0, 1, ${id}, 1, '2026-01-01', 1, 0, 0, 1, 0, 0, 0, 'o')`
const operation = `INSERT INTO holdfast.operation (bucket, owner, id, line, kind, account, amount, at)
  VALUES (0, ${id}, ${id}, 0, 1, ${id}, 1, now())`
const hold = `INSERT INTO holdfast.hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
  VALUES (0, ${id}, ${id}, 1, now(), 1, 'o')`
const checkpoint = `INSERT INTO holdfast.checkpoint
  (bucket, account, seq, at, credited, debited, held, allowance) VALUES (0, ${id}, 1, now(), 0, 0, 0, 0)`
const horizon = 'INSERT INTO holdfast.horizon (bucket, operations) VALUES (0, now())'

const openGrant = grant('amount, remaining, state', '5, 5, 1')
const broken = '23514'
const twice = '23505'

/** The first error of statements that are sent one after the other and rolled back; none if all are taken. */
async function refusal(...statements: string[]): Promise<string | undefined> {
  const client = await fixture.observer.connect()
  try {
    await client.query('BEGIN')
    for (const statement of statements) await client.query(statement)
    return undefined
  } catch (error) {
    return (error as { code: string }).code
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

test.each([
  ['a bucket below the first', account(-1)],
  ['a bucket after the last', account(4096)],
  ['a negative counter: credited', balance('credited', '-1')],
  ['a negative counter: debited', balance('credited, debited', '5, -1')],
  ['a negative counter: held', balance('held', '-1')],
  ['a walled account below zero', balance('walled, credited, debited', 'true, 1, 2')],
  ['a walled account below zero by a hold', balance('walled, credited, held', 'true, 1, 2')],
  ['a walled account below its backorder', balance('walled, debited, allowance', 'true, 3, 2')],
  ['a grant of nothing', grant('amount, remaining, state, empty', '0, 0, 1, true')],
  ['a grant with less than nothing left', grant('amount, remaining, state', '5, -1, 1')],
  [
    'a grant that lapsed by less than nothing',
    grant('amount, remaining, lapsed, state', '5, 5, -1, 1'),
  ],
  ['more left and lapsed than there was', grant('amount, remaining, lapsed, state', '5, 3, 3, 1')],
  ['a grant that is empty and is not', grant('amount, remaining, empty, state', '5, 5, true, 1')],
  ['a grant that is not empty and is', grant('amount, remaining, state', '5, 0, 1')],
  ['a state before the first', grant('amount, remaining, state', '5, 5, -1')],
  ['a state after the last', grant('amount, remaining, state', '5, 5, 4')],
  [
    'a rollover of less than nothing',
    grant('amount, remaining, state, rollover_limit', '5, 5, 1, -1'),
  ],
  ['an allocation of nothing', allocation(0, 0)],
  ['less than nothing given back', allocation(5, -1)],
  ['more given back than was taken', allocation(5, 6)],
])('%s', async (_, statement) => {
  expect(await refusal(statement)).toBe(broken)
})

test.each([
  ['the first bucket', account(0)],
  ['the last bucket', account(4095)],
  ['a walled account at zero', balance('walled, credited, debited, held', 'true, 5, 2, 3')],
  ['a walled account at its backorder', balance('walled, debited, allowance', 'true, 2, 2')],
  ['one that may owe', balance('debited', '2')],
  ['a grant that is used up', grant('amount, remaining, state, empty', '1, 0, 1, true')],
  ['a grant that has lapsed', grant('amount, remaining, lapsed, empty, state', '5, 0, 5, true, 3')],
  ['a grant that has not begun', grant('amount, remaining, state', '5, 5, 0')],
  ['all given back', allocation(1, 1)],
])('and is taken: %s', async (_, statement) => {
  expect(await refusal(statement)).toBeUndefined()
})

test.each([
  ['an account', account(0)],
  ['a balance', balance('credited', '0')],
  ['a movement', movement],
  ['a line of an operation', operation],
  ['a hold on one account', hold],
  ['a grant', openGrant],
  ['an allocation', allocation(1, 0)],
  ['a checkpoint', checkpoint],
  ['a horizon', horizon],
])('%s is there once', async (_, statement) => {
  expect(await refusal(statement)).toBeUndefined()
  expect(await refusal(statement, statement)).toBe(twice)
})
