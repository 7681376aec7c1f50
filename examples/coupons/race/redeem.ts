/** Which of the three can be broken, in every order of their statements. DATABASE_URL: a database that may be emptied. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { assertRaceFree, explore, instrument, type Report } from '@holdfast/race'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import type { Redeem } from '../src/coupon.ts'

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
await migrate(fromPg(pool))
await pool.end()

instrument(pg) // before the code opens a connection
const { redeem: unguarded } = await import('../src/redeem-unguarded.ts')
const { redeem: byStatements } = await import('../src/redeem-by-statements.ts')
const { redeem: ledger } = await import('../src/redeem-ledger.ts')

const [schema, counters] = ['schema', 'counters'].map((name) =>
  readFileSync(new URL(`../${name}.sql`, import.meta.url), 'utf8'),
) as [string, string]

type Redeemer = (request: Redeem) => Promise<boolean>

/** One redemption is left. `sameRequest`: one client that sends its request twice, instead of two users. */
async function twoOf(redeem: Redeemer, sameRequest: boolean, more = ''): Promise<Report> {
  // The ledger keeps what was. So each run has a code of its own.
  let code = ''
  const redeemAs = async (userId: string): Promise<boolean> =>
    await redeem({ requestId: `${code} ${userId}`, code, userId })
  return await explore({
    url: process.env['DATABASE_URL'],
    seed: async ({ query }) => {
      code = randomUUID()
      await query(`DROP TABLE IF EXISTS coupon, redemption, coupon_user; ${schema} ${more}`)
      await query('INSERT INTO coupon VALUES ($1, 1)', [code])
    },
    flows: { one: () => redeemAs('ann'), other: () => redeemAs(sameRequest ? 'ann' : 'bob') },
    // What happens inside of Holdfast's functions is explored by its own tests.
    functions: 'atomic',
    oracle: false,
    invariant: async ({ query }) => {
      const { length } = await query('SELECT FROM redemption')
      if (length !== 1) throw new Error(`redeemed ${length} times`)
    },
  })
}

const isRace = { message: /✗ race in .*redeemed 2 times/s }

void test('count, then insert: the code is redeemed twice', async () => {
  const [twoUsers, twice] = [await twoOf(unguarded, false), await twoOf(unguarded, true)]
  assert.throws(() => assertRaceFree(twoUsers), isRace)
  assert.throws(() => assertRaceFree(twice), isRace)
})

void test('statements that check and count hold', async () => {
  assertRaceFree(await twoOf(byStatements, false, counters))
  assertRaceFree(await twoOf(byStatements, true, counters))
})

void test('the ledger holds', async () => {
  assertRaceFree(await twoOf(ledger, false))
  assertRaceFree(await twoOf(ledger, true))
})
