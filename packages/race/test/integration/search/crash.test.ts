/** Flows that are ended at every point: what they leave behind must be all or nothing. */
import { beforeAll, expect, test } from 'vitest'
import { explore } from '../../../src/explore.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'
import { guardedReserve, openShop, stock } from './shop.ts'

let url: string
beforeAll(async () => {
  url = await openShop()
})

/** Reserves in one transaction and charges in the next: a crash in between leaves a seat unpaid. */
const reserveThenCharge: Flow = async (context) => {
  const reserved = await guardedReserve(context)
  if (reserved === true) await charge(context)
  return reserved
}

async function charge({ pool, flow }: FlowContext): Promise<void> {
  await pool.query('INSERT INTO payments (order_key, amount) VALUES ($1, 10)', [flow])
}

/** Pays for what was reserved and not paid. */
async function recover({ pool }: FlowContext, flow: string): Promise<void> {
  await pool.query(
    `INSERT INTO payments (order_key, amount)
     SELECT who, 10 FROM seats WHERE who = $1
     AND NOT EXISTS (SELECT FROM payments WHERE order_key = who)`,
    [flow],
  )
}

test('one transaction is all or nothing', async () => {
  const flows = { ann: guardedReserve, bob: guardedReserve }
  const { verdict, coverage } = await explore({ url, seed: stock, flows, crash: true })
  expect(verdict).toBe('race-free')
  // Five statements and what comes after the commit, of the one who gets the seat; one less of the other.
  expect(coverage.crashPoints).toBeGreaterThanOrEqual(20)
})

test('reserve, then charge: a crash in between is found', async () => {
  const flows = { ann: reserveThenCharge, bob: reserveThenCharge }
  const calm = await explore({ url, seed: stock, flows })
  expect(calm.verdict).toBe('race-free')
  const { verdict, failure } = await explore({ url, seed: stock, flows, crash: true })
  expect(verdict).toBe('race')
  expect(failure).toMatchObject({ kind: 'crash', reproduced: [5, 5] })
  expect(failure?.message).toMatch(/^ann crashed after its statement 5, before the answer arrived/)
  expect(failure?.run.outcomes[0]).toEqual({ kind: 'crashed' })
})

test('and is mended by what is done after a crash', async () => {
  const flows = { ann: reserveThenCharge, bob: reserveThenCharge }
  const { verdict } = await explore({ url, seed: stock, flows, crash: { recover } })
  expect(verdict).toBe('race-free')
})
