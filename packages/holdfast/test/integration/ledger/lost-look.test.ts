/**
 * A shared call that an account keeps waiting is given up after a moment, and the server is asked who keeps what. That
 * question can be lost as well: then the call goes on, and nobody is told of a lock timeout that is none of theirs.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const once = (): { readonly operationId: string } => ({ operationId: fresh() })

let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>
/** How often a question was lost, and what to do then. */
let lost = 0
let onLost = (): void => undefined

/** The backend that is asked about locked lines ends, as it does where an administrator ends it. */
beforeAll(() => {
  pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 4 })
  pool.on('error', () => undefined)
  const driver = fromPg(pool)
  const ending: Driver<pg.PoolClient> = {
    ...driver,
    alone: {
      async query(statement) {
        if (!statement.text.includes('locked_lines')) return await driver.alone.query(statement)
        lost += 1
        onLost()
        const text = 'SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())'
        return await driver.alone.query({ text, values: [] })
      },
    },
  }
  hf = createHoldfast(ending)
})
afterAll(() => pool.end())

test('the call is applied when the account is free, although nobody could be asked', async () => {
  const quota = hf.quota({ name: fresh(), limit: 100, per: 'day' })
  await quota.consume('hot', 1, once())
  const holder = await callerTransaction(fixture)
  await fixture.hf
    .quota({ name: quota.name, limit: 100, per: 'day' })
    .consume(holder, 'hot', 1, once())
  lost = 0
  onLost = () => void (lost === 2 && holder.query('COMMIT'))
  const calls = ['hot', 'hot', 'x'].map((key) => quota.consume(key, 1, once()))
  for (const verdict of await Promise.all(calls)) expect(verdict).toMatchObject({ ok: true })
  expect(lost).toBeGreaterThanOrEqual(2)
})

test('a call whose time is up says so, and has changed nothing', async () => {
  const quota = hf.quota({ name: fresh(), limit: 100, per: 'day' })
  await quota.consume('hot', 1, once())
  const holder = await callerTransaction(fixture)
  await fixture.hf
    .quota({ name: quota.name, limit: 100, per: 'day' })
    .consume(holder, 'hot', 1, once())
  lost = 0
  onLost = () => undefined
  const late = [1, 2].map(() => quota.consume('hot', 1, { ...once(), wait: '700 ms' }))
  for (const told of await Promise.allSettled(late)) {
    expect(told).toMatchObject({ status: 'rejected', reason: { code: 'LEDGER_TIMEOUT' } })
  }
  expect(lost).toBeGreaterThan(0)
  await holder.query('COMMIT')
  expect((await quota.peek('hot')).available).toBe(98)
})
