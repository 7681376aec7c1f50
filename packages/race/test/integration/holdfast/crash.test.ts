import { sample, withClient } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../../holdfast/src/index.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import type { Flow, FlowContext, InvariantContext } from '../../../src/run/options.ts'
import { call, told } from './deed.ts'
import { type Bounds, patienceMs } from './expectations.ts'
import { ledgerStage, type OwnHoldfast, type Tx } from './ledger-stage.ts'

/** Callers that die before any of their statements, or when one was committed and nobody told them. */
const stage = ledgerStage()
const calls = (hf: OwnHoldfast) => hf.quota({ name: 'calls', limit: 10, per: 'lifetime' })
const own = ({ pool }: FlowContext): OwnHoldfast => createHoldfast(fromPg(pool))

/** What one caller does under an id of its own, so that it can do it again. */
type Work = (hf: OwnHoldfast, id: string, tx: Tx | undefined, amount?: number) => Promise<unknown>

const hold: Work = (hf, id, tx, amount = 5) =>
  call(calls(hf).hold, tx, 'ann', amount, { operationId: id, ttl: '1 h' })

interface Case {
  readonly work: Work
  /** What the other caller does meanwhile. */
  readonly other: Work
  /** What both have used and hold when they are done. */
  readonly used: number
  readonly held: number
}

const consume: Work = (hf, id, tx, amount = 5) =>
  call(calls(hf).consume, tx, 'ann', amount, { operationId: id })

async function settle(hf: OwnHoldfast, id: string, tx?: Tx, amount = 5): Promise<unknown> {
  const { holdId } = (await hold(hf, id, tx, amount)) as { holdId: string }
  return await call(calls(hf).settle, tx, holdId, amount - 1)
}

// 2 of 10 are used before, so that two of 5 do not both fit.
const cases: Readonly<Record<string, Case>> = {
  consume: { work: consume, other: consume, used: 7, held: 0 },
  hold: { work: hold, other: hold, used: 2, held: 5 },
  'hold, then settle': {
    work: settle,
    other: (hf, id, tx) => consume(hf, id, tx, 2),
    used: 8,
    held: 0,
  },
}

const alone =
  (work: Work): Flow =>
  async (cx) =>
    told(await work(own(cx), cx.flow, undefined))

const joined =
  (work: Work): Flow =>
  async (cx) => {
    const hf = own(cx)
    return told(await hf.transaction((tx) => work(hf, cx.flow, tx)))
  }

const before = (hf: OwnHoldfast): Promise<unknown> =>
  calls(hf).consume('ann', 2, { operationId: 'past' })

async function balance({ query }: InvariantContext): Promise<{ used: number; held: number }> {
  const [row] = await query('SELECT debited::int AS used, held::int FROM holdfast.balance')
  return row as { used: number; held: number }
}

describe.each(sample(Object.entries(cases)))('%s', (_, { work, other, used, held }) => {
  const same = work === other
  const ways: readonly [string, Flow, Flow, Partial<ExploreOptions>, Bounds][] = [
    [
      'alone',
      alone(work),
      alone(other),
      // A hold and its settlement are two transactions, and others may come between.
      same ? { symmetric: true } : { oracle: false },
      same ? { classes: 4, schedules: 27 } : { classes: 9, schedules: 99 },
    ],
    ['joined', joined(work), joined(other), { symmetric: same }, { classes: 6, schedules: 71 }],
  ]

  // Two transactions are not one whole; what becomes of them is the next test's.
  test.each(same ? ways : ways.slice(1))(
    '%s: whole or not at all',
    async (...[, a, b, options, most]) => {
      const report = await stage.explore({
        before,
        flows: { a, b },
        crash: true,
        ...options,
        async invariant(context) {
          // What is held is held by a hold that time will end.
          const endless = `SELECT FROM holdfast.hold WHERE state = 0 AND expires_at > now() + interval '1 h'`
          expect(await context.query(endless)).toEqual([])
          expect((await balance(context)).used).toBeLessThanOrEqual(used)
        },
      })
      expect(report).toBeExhausted(most)
      expect(report.coverage.crashPoints).toBeGreaterThanOrEqual(8)
    },
    patienceMs,
  )

  // Whoever joined a transaction and died is gone as a whole; what comes again is the same call.
  test.each(sample(ways, 2))(
    '%s, and again with the same id: once',
    async (...[, a, b, options, most]) => {
      const report = await stage.explore({
        before,
        flows: { a, b },
        crash: { recover: (cx, flow) => (flow === 'a' ? a(cx) : b(cx)) },
        ...options,
        async invariant(context) {
          expect(await balance(context)).toEqual({ used, held })
        },
      })
      expect(report).toBeExhausted(most)
      expect(report.coverage.crashPoints).toBeGreaterThanOrEqual(8)
    },
    patienceMs,
  )

  test(
    'control: again with another id is caught',
    async () => {
      // Little enough for all of them to fit.
      const small = alone((hf, id, tx) => work(hf, id, tx, 2))
      const report = await stage.explore({
        before,
        flows: { a: small, b: small },
        oracle: false,
        crash: { recover: (cx, flow) => work(own(cx), `${flow} again`, undefined, 2) },
        async invariant(context) {
          const [row] = await context.query(
            `SELECT count(*)::int AS n FROM holdfast.operation WHERE amount = 2 AND seq > 1`,
          )
          expect(row).toEqual({ n: 2 })
        },
      })
      expect(report).toBeCaught(/crashed/)
    },
    patienceMs,
  )
})

describe('reserve, then charge, by hand', () => {
  let url = ''
  beforeAll(async () => {
    url = (await testDatabase()).directUrl
    await withClient(url, async (client) => {
      await client.query(`
        CREATE TABLE stock (left_over int NOT NULL);
        CREATE TABLE charge (who text NOT NULL)`)
    })
  })

  const naive: Flow = async ({ pool, flow, step }) => {
    const { rowCount } = await pool.query(
      'UPDATE stock SET left_over = left_over - 1 WHERE left_over > 0',
    )
    if (rowCount === 0) return 'sold out'
    await step('charge the card')
    await pool.query('INSERT INTO charge VALUES ($1)', [flow])
    return 'sold'
  }
  const options = (crash: ExploreOptions['crash'] = true): ExploreOptions => ({
    url,
    seed: ({ query }) => query('TRUNCATE stock, charge; INSERT INTO stock VALUES (2)'),
    flows: { ann: naive, bob: naive },
    crash,
    onProgress: () => undefined,
  })

  test('a piece is gone that nobody paid for', async () => {
    const report = await explore(options())
    expect(report).toBeCaught(/crashed/)
    expect(report.failure?.kind).toBe('crash')
  })

  test('tried again, it is gone twice', async () => {
    const report = await explore(options({ recover: naive }))
    expect(report).toBeCaught(/crashed/)
  })

  test('without crashes there is nothing wrong with it', async () => {
    expect(await explore(options(false))).toBeExhausted({ classes: 12, schedules: 30 })
  })
})
