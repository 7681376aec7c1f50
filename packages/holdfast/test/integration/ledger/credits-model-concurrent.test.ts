import { barrier } from '@holdfast/testkit'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Credits } from '../../../src/credits/index.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { GrantsModel } from '../../support/grants-model.ts'

/**
 * Several processes on one account with grants. What they were told, and what is left of every grant, must be
 * what the model says to the same commands in the order of the movements.
 */
const fixture = ledgerFixture()
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const settings = { seed, numRuns: Number(process.env['HOLDFAST_RUNS'] ?? 30), endOnFailure: true }
const workers = 4
const overdraft = 15
const unlocked = 'unlocked'
const pools: pg.Pool[] = []

beforeAll(async () => {
  for (let worker = 0; worker < workers; worker += 1) {
    pools.push(new pg.Pool({ connectionString: fixture.database.url, max: 1 }))
  }
  const files = ownFiles()
  const repeatables = files.repeatables.map((file) => ({
    ...file,
    text: file.text.replaceAll(/FOR NO KEY UPDATE( OF \w+)?( SKIP LOCKED)?/g, ''),
  }))
  await migrateFiles(fromPg(fixture.observer), { ...files, repeatables }, { schema: unlocked })
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
})

const amount = fc.integer({ min: 1, max: 30 })
/** Which of one's own. */
const pick = fc.nat(20)
const features = ['chat', 'image', undefined] as const
const feature = fc.constantFrom(...features)
const command = fc.oneof(
  fc.record({
    act: fc.constant('grant' as const),
    amount,
    onlyFor: fc.constantFrom(undefined, ['chat'], ['image'], ['chat', 'image']),
    priority: fc.nat(2),
    rank: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  }),
  fc.record({ act: fc.constant('spend' as const), amount, feature }),
  fc.record({ act: fc.constant('hold' as const), amount, feature }),
  fc.record({ act: fc.constant('settle' as const), pick, amount: fc.nat(40) }),
  fc.record({ act: fc.constant('release' as const), pick }),
  fc.record({ act: fc.constant('refund' as const), pick, amount }),
)
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never
const lists = fc.array(fc.array(command, { minLength: 2, maxLength: 10, size: 'max' }), {
  minLength: workers,
  maxLength: workers,
})

/** What was asked, under which name its movement is found, what was answered, and what the model does. */
interface Deed {
  readonly movement: string
  readonly verdict: Verdict<number>
  /** Of what is taken: more than there was, if it was refused. */
  readonly wanted: number
  readonly feature?: string | undefined
  apply(model: GrantsModel): unknown
}

/** Plays the commands of one worker; holds and refunds are of its own operations. */
async function play(
  credits: Credits<pg.PoolClient, number>,
  key: string,
  worker: number,
  commands: readonly Command[],
): Promise<Deed[]> {
  const deeds: Deed[] = []
  const holds = new Map<string, string>()
  const spent: string[] = []
  for (const [at, asked] of commands.entries()) {
    const name = `${worker}:${at}`
    const options = { operationId: name }
    if (asked.act === 'grant') {
      const { priority, rank, onlyFor } = asked
      const terms = {
        ...(rank === undefined ? {} : { expiresAt: new Date(Date.UTC(2100, rank)) }),
        ...(onlyFor && { onlyFor }),
      }
      deeds.push({
        movement: `grant ${name}`,
        verdict: await credits.grant(key, asked.amount, { ...options, priority, ...terms }),
        wanted: 0,
        apply: (model) => model.grant(name, asked.amount, priority, rank ?? Infinity, 0, onlyFor),
      })
    } else if (asked.act === 'spend' || asked.act === 'hold') {
      const isHold = asked.act === 'hold'
      const { feature } = asked
      const operation = { ...options, ...(feature && { feature }) }
      const verdict = isHold
        ? await credits.hold(key, asked.amount, { ...operation, ttl: '1 h' })
        : await credits.spend(key, asked.amount, operation)
      if (verdict.ok && isHold) holds.set(name, verdict.holdId as string)
      else if (verdict.ok) spent.push(name)
      deeds.push({
        movement: `${isHold ? 'hold' : 'debit'} ${name}`,
        verdict,
        wanted: asked.amount,
        feature,
        apply: (model) => model.take(name, asked.amount, isHold, feature),
      })
    } else if (asked.act === 'refund') {
      const of = spent[asked.pick % spent.length]
      if (of === undefined) continue
      deeds.push({
        movement: `refund ${name}`,
        verdict: await credits.refund(key, asked.amount, { ...options, of }),
        wanted: 0,
        apply: (model) => model.refund(of, asked.amount),
      })
    } else {
      const held = [...holds.keys()][asked.pick % holds.size]
      if (held === undefined) continue
      const id = holds.get(held) as string
      const actual = asked.act === 'settle' ? asked.amount : undefined
      holds.delete(held)
      if (actual !== undefined) spent.push(held)
      deeds.push({
        movement: `${asked.act} ${held}`,
        verdict: await (actual === undefined ? credits.release(id) : credits.settle(id, actual)),
        wanted: 0,
        apply: (model) => model.settle(held, actual),
      })
    }
  }
  return deeds
}

async function read(schema: string, view: string, columns: string, key: string): Promise<string[]> {
  const { rows } = await fixture.observer.query<{ text: string }>(
    `SELECT concat_ws(' ', ${columns}) AS text FROM ${schema}.${view} WHERE key = $1
     ORDER BY ${view === 'movements' ? 'sequence' : '1'}`,
    [key],
  )
  return rows.map(({ text }) => text)
}

/** Fails unless everything is as in the order of the movements. */
async function checkSerial(
  commands: readonly (readonly Command[])[],
  schema = 'holdfast',
): Promise<void> {
  const key = fresh()
  const creditsOf = (pool: pg.Pool): Credits<pg.PoolClient, number> =>
    createHoldfast(fromPg(pool), { ledger: { schema } }).credits({ name: 'credits', overdraft })
  await creditsOf(fixture.pool).grant(key, 10, { operationId: 'first' })
  // The overdraft comes with what takes: from here on everybody is told of it.
  await creditsOf(fixture.pool).spend(key, 1, { operationId: 'second' })
  const together = barrier(workers)
  const played = await Promise.all(
    commands.map(async (list, worker) => {
      const credits = creditsOf(pools[worker] as pg.Pool)
      await together()
      return await play(credits, key, worker, list)
    }),
  )
  const deeds = played.flat()
  const accepted = new Map(
    deeds.filter(({ verdict }) => verdict.ok).map((deed) => [deed.movement, deed]),
  )
  const model = new GrantsModel(overdraft)
  model.grant('first', 10, 50, Infinity, 0)
  model.take('second', 1, false)
  // What was available after each movement, by its sequence number; the first two are behind us.
  const state = (): Map<string, number> =>
    new Map([
      ['available', model.available],
      ...features.map((each) => [String(each), model.spendable(each)] as const),
    ])
  const states = [new Map<string, number>(), new Map<string, number>(), state()]
  const [, , ...movements] = await read(schema, 'movements', 'kind, operation_id', key)
  expect(movements.toSorted()).toEqual([...accepted.keys()].toSorted())
  for (const movement of movements) {
    const deed = accepted.get(movement) as Deed
    deed.apply(model)
    expect([movement, deed.verdict.available]).toEqual([movement, model.available])
    states.push(state())
  }
  for (const deed of deeds) {
    const { movement, verdict, wanted, feature, apply } = deed
    if (verdict.ok) continue
    // A refund that was too much then still is.
    if (wanted === 0) {
      expect([movement, apply(model)]).toEqual([movement, false])
      continue
    }
    // The numbers may be those of a moment later than the one that had too little.
    const { sequence } = verdict.lines[0] as (typeof verdict.lines)[number]
    const seen = states[sequence]
    expect([movement, verdict.available]).toEqual([movement, seen?.get('available')])
    expect([movement, verdict.spendable]).toEqual([movement, seen?.get(String(feature))])
    const spendable = states.slice(2, sequence + 1).map((each) => each.get(String(feature)) ?? 0)
    expect(Math.min(...spendable)).toBeLessThan(wanted)
  }
  const left = await read(
    schema,
    'credit_grants',
    "operation_id, concat_ws('/', used, remaining, lapsed)",
    key,
  )
  expect(left.toSorted()).toEqual(
    Object.entries(model.grants)
      .map(([name, text]) => `${name} ${text}`)
      .toSorted(),
  )
}

describe(`grants under ${workers} processes, of seed ${seed}`, () => {
  test('are as if one after the other', { timeout: 120_000 }, async () => {
    // The same commands may come out another way: shrinking would follow chance.
    const outcome = await fc.check(
      fc.asyncProperty(lists, (all) => checkSerial(all)),
      settings,
    )
    expect(outcome.errorInstance ?? 'as the model says').toBe('as the model says')
  })

  test('control: without the lock on the account they are not', { timeout: 120_000 }, async () => {
    const property = fc.asyncProperty(lists, (all) => checkSerial(all, unlocked))
    const outcome = await fc.check(property, { ...settings, numRuns: 1_000 })
    expect(outcome.failed).toBe(true)
  })
})
