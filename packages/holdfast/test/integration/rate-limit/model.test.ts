import { rounds } from '@holdfast/testkit'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { RateLimit, RateLimitOptions } from '../../../src/rate-limit/index.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { handSetClock, setClock } from '../../support/hand-set-clock.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { LimitModel, type ModelSpan, type ModelVerdict } from '../../support/limit-model.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

/** Histories with the server's clock in our hands, compared with a model in TypeScript: every verdict, to the moment. */
const fixture = pgFixture()
const schema = 'clocked'
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const settings = {
  seed,
  numRuns: Number(process.env['HOLDFAST_RUNS'] ?? rounds(25)),
  endOnFailure: process.env['HOLDFAST_SHRINK'] === undefined,
}

beforeAll(async () => {
  await migrateFiles(fromPg(fixture.observer), handSetClock(ownFiles()), { schema })
})

const minuteUs = 60_000_000
const hourUs = 60 * minuteUs
const dayUs = 24 * hourUs
/** Before the clocks of Santiago are set forward. */
const firstUs = Date.UTC(2026, 8, 5, 11, 59, 59) * 1_000

type Span = Pick<RateLimitOptions, 'per' | 'timeZone' | 'rate' | 'burst'>

const spans: readonly (readonly [name: string, given: Span, model: ModelSpan, stepUs: number])[] = [
  ['an hour', { per: 'hour' }, { unit: 'hour', zone: 'UTC' }, hourUs],
  [
    'a day of Santiago',
    { per: 'day', timeZone: 'America/Santiago' },
    { unit: 'day', zone: 'America/Santiago' },
    dayUs,
  ],
  [
    'a month of Brussels',
    { per: 'month', timeZone: 'Europe/Brussels' },
    { unit: 'month', zone: 'Europe/Brussels' },
    30 * dayUs,
  ],
  ['a rate', { rate: '1 h' }, { rateUs: hourUs, burst: undefined }, hourUs / 7],
  ['a rate with a burst', { rate: '1 h', burst: 3 }, { rateUs: hourUs, burst: 3 }, hourUs / 7],
]

const command = fc.record({
  act: fc.constantFrom('consume', 'consume', 'consume', 'consume', 'peek', 'reset', 'forget'),
  key: fc.nat({ max: 2 }),
  /** Made at once: they share a statement. */
  costs: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }),
  limit: fc.constantFrom(4, 7, 7, 7, 12),
  /** By a limit that is declared as a number: then calls go the short way. */
  isFixed: fc.boolean(),
  /** In steps of the span; below zero the clock is set back. */
  steps: fc.constantFrom(0, 0, 0, 0, 0.1, 0.5, 1, 1, 3, -0.1, -0.5, -1, -4),
})
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never

const atMs = (us: number): Date => new Date(Math.ceil(us / 1_000))

async function play(
  commands: readonly Command[],
  given: Span,
  span: ModelSpan,
  stepUs: number,
): Promise<void> {
  let limit = 7
  const hf = fixture.create({ schema })
  const name = fresh()
  const declared = (by: RateLimitOptions['limit']): RateLimit<unknown> =>
    hf.rateLimit({ name, limit: by, ...given } as RateLimitOptions)
  const real = declared(() => limit)
  const model = new LimitModel(span)
  let nowUs = firstUs
  for (const { act, key: number, costs, limit: newLimit, isFixed, steps } of commands) {
    const key = `key-${number}`
    limit = newLimit
    nowUs += Math.round(steps * stepUs)
    await setClock(fixture.observer, schema, nowUs)
    if (act === 'reset') {
      await real.reset(key)
      model.reset(key)
    } else if (act === 'forget') {
      await real.forget()
      model.forget(nowUs)
    } else if (act === 'peek') {
      const [cost = 1] = costs
      expect(await real.peek(key, { cost })).toEqual(
        expected(model.peek(key, cost, limit, nowUs), limit),
      )
    } else {
      const asked = isFixed ? declared(limit) : real
      const answers = await Promise.all(costs.map((cost) => asked.consume(key, cost)))
      const wanted = costs.map((cost) => expected(model.consume(key, cost, limit, nowUs), limit))
      // Of a refusal only what it says about itself: it was told what all of them have left over.
      expect(answers.map(({ ok }) => ok)).toEqual(wanted.map(({ ok }) => ok))
      answers.forEach((answer, at) => {
        if (answer.ok || costs.length === 1) expect(answer).toEqual(wanted[at])
      })
    }
  }
}

function expected(
  { ok, available, resetsUs, retryUs }: ModelVerdict,
  limit: number,
): Record<string, unknown> & { ok: boolean } {
  const told = { ok, limit, available, resetsAt: atMs(resetsUs) }
  if (ok) return told
  const retry = retryUs === undefined ? {} : { retryAt: atMs(retryUs) }
  return { ...told, reason: 'insufficient', ...retry }
}

describe(`histories of seed ${seed}`, () => {
  test.each(spans)('of %s are as the model says', { timeout: 300_000 }, async (_, ...span) => {
    const outcome = await fc.check(
      fc.asyncProperty(
        fc.array(command, { maxLength: 30, size: 'max' }),
        async (commands) => await play(commands, ...span),
      ),
      settings,
    )
    const { failed, errorInstance } = outcome
    expect({ failed, report: fc.defaultReportMessage(outcome), errorInstance }).toMatchObject({
      failed: false,
    })
  })
})

/** `retryAt` and `resetsAt` of whoever is told them, if nobody else uses the key until then. */
async function hold(
  commands: readonly Command[],
  {
    limit,
    cost,
    looks,
  }: { readonly limit: number; readonly cost: number; readonly looks: boolean },
  given: Span,
  stepUs: number,
): Promise<void> {
  const hf = fixture.create({ schema })
  const name = fresh()
  const declared = (by: number): RateLimit<unknown> =>
    hf.rateLimit({ name, limit: by, ...given } as RateLimitOptions)
  let nowUs = firstUs
  for (const { act, costs, limit: other, steps } of commands) {
    nowUs += Math.round(steps * stepUs)
    await setClock(fixture.observer, schema, nowUs)
    if (act === 'reset') await declared(other).reset('key')
    else await Promise.all(costs.map((each) => declared(other).consume('key', each)))
  }
  const last = declared(limit)
  const most = given.burst ?? limit
  const told = looks ? await last.peek('key', { cost }) : await last.consume('key', cost)
  if (!told.ok && cost > most) expect(told.retryAt).toBeUndefined()
  if (!told.ok && cost <= most) {
    expect(Number(told.retryAt)).toBeGreaterThanOrEqual(Math.floor(nowUs / 1_000))
    await setClock(fixture.observer, schema, Number(told.retryAt) * 1_000)
    expect(await last.consume('key', cost)).toMatchObject({ ok: true })
  } else {
    await setClock(fixture.observer, schema, Number(told.resetsAt) * 1_000)
    expect(await last.peek('key')).toMatchObject({ ok: true, available: most })
  }
}

describe(`what is promised, seed ${seed}`, () => {
  test.each(spans)('by %s comes true', { timeout: 300_000 }, async (_, given, __, stepUs) => {
    const last = fc.record({
      limit: fc.constantFrom(4, 7, 12),
      cost: fc.integer({ min: 1, max: 13 }),
      looks: fc.boolean(),
    })
    const before = fc.array(command, { maxLength: 8, size: 'max' })
    const property = fc.asyncProperty(before, last, async (commands, asked) => {
      await hold(commands, asked, given, stepUs)
    })
    const outcome = await fc.check(property, { ...settings, numRuns: settings.numRuns * 2 })
    const { failed, errorInstance } = outcome
    expect({ failed, report: fc.defaultReportMessage(outcome), errorInstance }).toMatchObject({
      failed: false,
    })
  })
})
