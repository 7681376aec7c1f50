/**
 * The short way of one plain line (`apply_new`, in binary where the client lets us): the same answers and the same rows
 * as by the whole way, and whatever is not plain, not new or not there goes that way.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import fc from 'fast-check'
import type pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { Driver, Row, Statement } from '../../../src/core/driver.ts'
import { channels } from '../../../src/core/events.ts'
import { holdfastError } from '../../../src/core/errors.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { weakened } from '../../support/weakened-files.ts'

const fixture = ledgerFixture()
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const numRuns = Number(process.env['HOLDFAST_RUNS'] ?? 40)

type Query = (statement: Statement) => Promise<readonly Row[]>

/** A driver that is listened to, and perhaps interfered with. */
function heard(
  between: (statement: Statement, send: Query) => Promise<readonly Row[]> = async (each, send) =>
    await send(each),
): { readonly driver: Driver<pg.PoolClient>; readonly sent: string[] } {
  const driver = fromPg(fixture.pool)
  const sent: string[] = []
  const query: Query = async (statement) => {
    const called = /apply\w*(?=\()/.exec(statement.text)?.[0]
    if (called !== undefined) sent.push(called)
    return await between(statement, async (each) => await driver.alone.query(each))
  }
  return { driver: { ...driver, alone: { query } }, sent }
}

/** For clients that take text only. */
const asText = async (statement: Statement, send: Query): Promise<readonly Row[]> => {
  const { text, values, columns = [] } = statement
  return await send({ text, values, columns })
}

interface Asked {
  readonly key: string
  readonly cost: number
  readonly id: number
}

type How = 'short' | 'short as text' | 'whole'

/** Rounds of calls at once, each in one batch, in a book of their own. */
async function played(
  rounds: readonly (readonly Asked[])[],
  limit: number,
  how: How,
  schema = 'holdfast',
): Promise<{ readonly verdicts: unknown; readonly rows: unknown; readonly sent: string[] }> {
  const book = fresh()
  const { driver, sent } = heard(how === 'short as text' ? asText : undefined)
  const hf = createHoldfast(driver, { schema, ledger: { lanes: 1 } })
  const quota = hf.quota({ name: book, limit, per: 'lifetime' })
  // Whoever says more than an id goes the whole way.
  const more = how === 'whole' ? { upTo: false } : {}
  const named = (id: number): string => `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`
  const verdicts: unknown[] = []
  for (const key of ['a', 'b']) {
    await quota.consume(key, 1, { operationId: fresh(), upTo: false })
  }
  for (const round of rounds) {
    const answers = await Promise.all(
      round.map(
        async ({ key, cost, id }) =>
          await quota.consume(key, cost, { operationId: named(id), ...more }),
      ),
    )
    for (const answer of answers) verdicts.push(withoutTime(answer))
  }
  return { verdicts, rows: await rowsOf(book, schema), sent }
}

/** A refusal without a lock is judged by the balances before its call, so of refusals only the reason is compared. */
function withoutTime(verdict: Verdict<number>): object {
  if (!verdict.ok) return { ok: false, reason: verdict.reason, key: verdict.key }
  const lines = verdict.lines.map((line) => ({ ...line, book: undefined }))
  return { ...verdict, at: undefined, lines }
}

/** All that is stored of a book, but for its name and the time. */
async function rowsOf(book: string, schema: string): Promise<unknown> {
  const { rows } = await fixture.observer.query<{ rows: unknown }>(
    `SELECT jsonb_agg(to_jsonb(x) ORDER BY key, seq) AS rows FROM (
       SELECT a.key, m.seq, m.kind, m.credit, m.debit, m.hold, m.credited, m.debited, m.held, m.allowance,
         CASE WHEN m.operation_id LIKE '00000000%' THEN m.operation_id END AS operation_id, m.note, m.hold_id,
         CASE WHEN m.operation_id LIKE '00000000%' THEN o.id END AS id, o.line, o.amount, o.kind AS as_kind,
         o.owner = a.id AS own, o.at = m.at AS same_time,
         b.seq AS last, b.debited AS used, b.credited AS given, b.allowance AS allowed, b.held AS apart
       FROM ${schema}.account a
       JOIN ${schema}.balance b ON b.bucket = a.bucket AND b.account = a.id
       JOIN ${schema}.movement m ON m.bucket = a.bucket AND m.account = a.id
       LEFT JOIN ${schema}.operation o ON o.bucket = m.bucket AND o.account = m.account AND o.seq = m.seq
       WHERE a.book = $1) x`,
    [book],
  )
  return rows[0]?.rows
}

const asked = fc.record({
  key: fc.constantFrom('a', 'a', 'b', 'new'),
  cost: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(3, 2 ** 32 + 5, 2 ** 43)),
  id: fc.integer({ min: 1, max: 60 }),
})
const rounds = fc.array(fc.array(asked, { minLength: 1, maxLength: 8 }), { maxLength: 6 })
const limits = fc.constantFrom(20, 60, 2 ** 33, 2 ** 44, Number.MAX_SAFE_INTEGER)

describe(`histories of seed ${seed}`, () => {
  test('by the short way, in binary and as text, and by the whole: the same answers and rows', async () => {
    let short = 0
    await fc.assert(
      fc.asyncProperty(rounds, limits, async (history, limit) => {
        const whole = await played(history, limit, 'whole')
        expect(whole.sent).not.toContain('apply_new')
        for (const how of ['short', 'short as text'] as const) {
          const { verdicts, rows, sent } = await played(history, limit, how)
          expect(verdicts).toEqual(whole.verdicts)
          expect(rows).toEqual(whole.rows)
          short += sent.filter((name) => name === 'apply_new').length
        }
      }),
      { seed, numRuns },
    )
    expect(short).toBeGreaterThan(numRuns)
  })

  test.each([
    ['the look at the balance', />= l\.debits/, '>= -largest'],
    ['what it has left behind', /c\.debited \+ l\.debits AS debited/, 'c.debited AS debited'],
    [
      'one element for all lines',
      /coalesce\(one_amount, amounts\[i\]\)/g,
      'coalesce(amounts[i], 1)',
    ],
  ])('control: without %s they differ', async (name, piece, instead) => {
    const schema = `without ${name}`.replaceAll(' ', '_')
    await migrateFiles(fromPg(fixture.observer), weakened('apply_new', piece, instead), { schema })
    const outcome = await fc.check(
      fc.asyncProperty(rounds, limits, async (history, limit) => {
        const whole = await played(history, limit, 'whole')
        const { verdicts, rows } = await played(history, limit, 'short', schema)
        expect(verdicts).toEqual(whole.verdicts)
        expect(rows).toEqual(whole.rows)
      }),
      { seed, numRuns: 100, endOnFailure: true },
    )
    expect(outcome.failed).toBe(true)
  })
})

/** Two accounts that are open, and what is asked of them at once. */
async function open(driver: Driver<pg.PoolClient>, schema = 'holdfast') {
  const hf: Holdfast<pg.PoolClient> = createHoldfast(driver, { schema, ledger: { lanes: 1 } })
  const quota = hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
  for (const key of ['a', 'b']) await quota.consume(key, 1, { operationId: fresh() })
  const both = async (ids: readonly string[] = [fresh(), fresh()]): Promise<Verdict<number>[]> =>
    await Promise.all(
      ids.map(
        async (operationId, at) => await quota.consume('ab'[at % 2] as string, 2, { operationId }),
      ),
    )
  return { hf, quota, both }
}

describe('what is not there', () => {
  test.each([
    ['a schema without the function', 'DROP FUNCTION', ''],
    ['a role that may not use it', 'REVOKE EXECUTE ON FUNCTION', 'FROM PUBLIC, CURRENT_USER'],
  ])('%s: the whole way, and for a while nobody asks again', async (_, verb, rest) => {
    const schema = `older_${verb.length}`
    await migrateFiles(fromPg(fixture.observer), ownFiles(), { schema })
    const { rows } = await fixture.observer.query<{ name: string }>(
      `SELECT '${schema}.apply_new'::regproc::oid::regprocedure::text AS name`,
    )
    const { driver, sent } = heard(async (statement, send) => {
      // The tests' role may do everything, also what it was forbidden.
      if (rest !== '' && statement.text.includes('apply_new'))
        throw Object.assign(new Error('no right'), { code: '42501' })
      return await send(statement)
    })
    if (rest === '') await fixture.observer.query(`${verb} ${rows[0]?.name}`)
    const { both } = await open(driver, schema)
    for (let round = 0; round < 3; round += 1) {
      for (const verdict of await both())
        expect(verdict).toMatchObject({ ok: true, replayed: false })
    }
    expect(sent.filter((name) => name === 'apply_new')).toHaveLength(1)
    expect(sent.filter((name) => name === 'apply_plain')).toHaveLength(3)
  })
})

describe('an id that is known', () => {
  test('gets its first answer, and its neighbour is applied once', async () => {
    const { driver, sent } = heard()
    const { both } = await open(driver)
    const [first, second, third] = [fresh(), fresh(), fresh()]
    const [told] = await both([first, second])
    const [again, other] = await both([first, third])
    expect(again).toEqual({ ...told, replayed: true })
    expect(other).toMatchObject({ ok: true, replayed: false, sequence: 3, debited: 5 })
    expect(sent.slice(-3)).toEqual(['apply_new', 'apply_plain', 'apply_debit'])
  })
})

describe('an answer that is lost', () => {
  const losing = (then: 'answers' | 'fails') => {
    let [lost, asks] = [false, 0]
    return heard(async (statement, send) => {
      if (!statement.text.includes('apply_new') && !lost) return await send(statement)
      if (lost && then === 'fails' && (asks += 1) > 1) throw holdfastError('POOL_STARVED')
      const rows = await send(statement)
      if (lost) return rows
      lost = true
      throw Object.assign(new Error('read'), { code: 'ECONNRESET' })
    })
  }

  test('is asked for with the same ids', async () => {
    const { both } = await open(losing('answers').driver)
    for (const verdict of await both())
      expect(verdict).toMatchObject({ ok: true, sequence: 2, debited: 3 })
  })

  test('is unknown if that fails', async () => {
    const { both, quota } = await open(losing('fails').driver)
    await expect(both()).rejects.toMatchObject({ code: 'LEDGER_OUTCOME_UNKNOWN' })
    expect(quota.name).toBeDefined()
  })
})

test.each(['null', '[1,2]', '"text"', '[1,9,1,1,1,1,1,0]', '[1,1,2,1,1,1,1,0]', '[1.5]'])(
  'an answer %s is not taken for a verdict',
  async (answer) => {
    const { driver } = heard(async (statement, send) => {
      if (!statement.text.includes('apply_new')) return await send(statement)
      return [{ answer, pid: '1' }]
    })
    const { both } = await open(driver)
    await expect(both()).rejects.toMatchObject({ code: 'LEDGER_ANSWER_UNREADABLE' })
  },
)

describe('who listens', () => {
  const events: unknown[] = []
  const hear = (event: unknown): void => void events.push(event)
  const names = [channels.ledgerBatch.name, channels.ledgerOperation.name]
  afterEach(() => {
    for (const name of names) unsubscribe(name, hear)
  })

  test('is told of every operation', async () => {
    const { both } = await open(heard().driver)
    for (const name of names) subscribe(name, hear)
    const ids = [fresh(), fresh()]
    await both(ids)
    expect(events).toHaveLength(3)
    expect(events[0]).toMatchObject({
      key: 'a',
      operationId: ids[0],
      kind: 'debit',
      outcome: 'accepted',
    })
    expect(events[2]).toMatchObject({ operations: 2, leftOut: 0, tallies: [{ count: 2 }] })
  })
})

test('an error begins where it was asked for', async () => {
  const { driver } = heard(async (statement, send) => {
    if (statement.text.includes('apply_new')) throw holdfastError('POOL_STARVED')
    return await send(statement)
  })
  const { quota } = await open(driver)
  const whoAsks = async (): Promise<unknown> =>
    await quota.consume('a', 1, { operationId: fresh() })
  const [outcome] = await Promise.allSettled([whoAsks(), whoAsks()])
  const { stack = '' } = (outcome as PromiseRejectedResult).reason as Error
  expect(stack.split('\n')[1]).toContain('whoAsks')
})

test('closing waits for what is under way, and refuses what comes then', async () => {
  const gate = Promise.withResolvers<void>()
  const { driver } = heard(async (statement, send) => {
    if (statement.text.includes('apply_new')) await gate.promise
    return await send(statement)
  })
  const { hf, both } = await open(driver)
  const asking = both()
  const late = await hf.close({ within: 1, leaveAfter: 1 })
  expect(late.left).toEqual([{ what: 'operation', name: '' }])
  await expect(both()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  gate.resolve()
  for (const verdict of await asking) expect(verdict.ok).toBe(true)
  expect((await hf.close()).left).toBeDefined()
})

test('and nothing is broken', async () => {
  expect(await brokenInvariants(fixture.observer)).toEqual([])
})
