/** A look changes nothing, ends by itself, and leaves nothing behind in the session. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { look } from '../../../src/observe/look.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { reportsOn } from '../../support/reports.ts'

const fixture = ledgerFixture('CREATE TABLE theirs (id int)')
let one: pg.Pool

beforeAll(() => {
  one = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
})
afterAll(async () => await one.end())

test('writes are refused by the server', async () => {
  const writing = look(fromPg(one), 1_000, (transaction) =>
    transaction.query({ text: 'INSERT INTO theirs VALUES (1)', values: [] }),
  )
  await expect(writing).rejects.toMatchObject({ code: '25006' })
})

test('what takes too long is ended, with a code; the session is as it was before', async () => {
  const slow = look(fromPg(one), 50, (transaction) =>
    transaction.query({ text: 'SELECT pg_sleep(30)', values: [] }),
  )
  await expect(slow).rejects.toMatchObject({ code: 'OBSERVE_TIMEOUT', retryable: true })
  const { rows } = await one.query(
    `SELECT current_setting('statement_timeout') AS patience, current_setting('transaction_read_only') AS ro`,
  )
  expect(rows).toEqual([{ patience: '0', ro: 'off' }])
})

test('a table that somebody keeps locked does not keep us', async () => {
  const blocker = await fixture.observer.connect()
  await blocker.query('BEGIN; LOCK TABLE holdfast.account')
  const reports = reportsOn(fromPg(one), [], 100)
  await expect(reports.books()).rejects.toMatchObject({ code: 'OBSERVE_TIMEOUT' })
  await blocker.query('ROLLBACK')
  blocker.release()
  expect(await reports.books()).toEqual([])
})

test('inside a transaction of the same client it is refused, not hung', async () => {
  const driver = fromPg(one)
  await createHoldfast(driver).transaction(async () => {
    await expect(reportsOn(driver).books()).rejects.toMatchObject({ code: 'TX_NESTED' })
  })
})
