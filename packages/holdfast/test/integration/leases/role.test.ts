import { expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { appRole } from '../../support/app-role.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

/** The role of an application: functions, and no right on any table. */
const fixture = ledgerFixture('CREATE TABLE written (lease text)')
const role = appRole(fixture)

test('an application without any right on tables holds leases and leads', async () => {
  const hf = createHoldfast(fromPg(role.pool))
  const lease = await hf.leases.acquire(fresh())
  await hf.transaction(async (tx) => await lease.guard(tx))
  expect(await lease.renew()).toBe(true)
  expect(await hf.leases.read(lease.name)).toMatchObject({ state: 'held' })
  expect(await lease.release()).toBe(true)
  await hf.leader({ name: fresh() }).run(async (term) => {
    await hf.transaction(async (tx) => await term.guard(tx))
  })
  await hf.leader({ name: fresh(), session: fromPg(role.pool) }).run(async (term) => {
    await hf.transaction(async (tx) => await term.guard(tx))
  })
})

test.each([
  'SELECT owner FROM holdfast.lease',
  'UPDATE holdfast.lease SET token = 0',
  'DELETE FROM holdfast.lease_counter',
  'SELECT holdfast.next_token(1::smallint)',
])('it may not: %s', async (text) => {
  await expect(role.pool.query(text)).rejects.toMatchObject({ code: '42501' })
})

test('nor release what it does not own', async () => {
  const hf = createHoldfast(fromPg(role.pool))
  const lease = await hf.leases.acquire(fresh())
  const { rows } = await role.pool.query<{ answer: string }>(
    'SELECT holdfast.release_lease($1, $1, $2, $3, NULL) AS answer',
    [lease.name, fresh(), String(lease.token)],
  )
  expect(rows).toEqual([{ answer: 'taken' }])
  expect(await lease.renew()).toBe(true)
  await lease.release()
})
