import { sample } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast, type Isolation } from '../../../../holdfast/src/index.ts'
import type { Flow } from '../../../src/run/options.ts'
import { alone, call, type Deed, joined, told } from './deed.ts'
import { type Bounds, patienceMs } from './expectations.ts'
import { ledgerStage, type OwnHoldfast, type Past } from './ledger-stage.ts'

const stage = ledgerStage()

const ever = (hf: OwnHoldfast) => hf.quota({ name: 'ever', limit: 10, per: 'lifetime' })
const month = (hf: OwnHoldfast) => hf.quota({ name: 'month', limit: 10, per: 'month' })

const consume =
  (operationId: string, amount = 6, key = 'ann'): Deed =>
  (hf, tx) =>
    call(ever(hf).consume, tx, key, amount, { operationId })
const setLimit =
  (operationId: string): Deed =>
  (hf, tx) =>
    call(ever(hf).setLimit, tx, 'ann', 5, { operationId })

/** 1 of 10 is used of each. */
async function before(hf: OwnHoldfast): Promise<void> {
  await ever(hf).consume('ann', 1, { operationId: 'ann' })
  await ever(hf).consume('bob', 1, { operationId: 'bob' })
}

const two = { classes: 10, schedules: 12 }
const three = { classes: 32, schedules: 40 }

interface Case extends Past {
  readonly flows: Readonly<Record<string, Flow>>
  readonly most: Bounds
}

const consumeMonthly =
  (operationId: string): Deed =>
  (hf, tx) =>
    call(month(hf).consume, tx, 'ann', 6, { operationId })
const setMonthly =
  (operationId: string): Deed =>
  (hf, tx) =>
    call(month(hf).setLimit, tx, 'ann', 5, { operationId })

const opening: Readonly<Record<string, Case>> = {
  'by two': { flows: { a: alone(consume('a')), b: joined(consume('b')) }, most: two },
  'by three': {
    flows: { a: alone(consume('a')), b: alone(consume('b')), c: joined(consume('c')) },
    most: three,
  },
  'by who sets its limit': {
    flows: { a: alone(consume('a')), b: alone(setLimit('b')), c: joined(consume('c', 4)) },
    most: three,
  },
  'of a month, by who sets its limit': {
    flows: {
      a: alone(consumeMonthly('a')),
      b: alone(setMonthly('b')),
      c: joined(consumeMonthly('c')),
    },
    most: three,
  },
}

test.each(sample(Object.entries(opening), 6))(
  'an account is opened %s at once',
  async (_, { most, ...once }) => {
    expect(await stage.explore({ ...once, deadlocks: 'fail' })).toBeExhausted(most)
  },
  patienceMs,
)

const inTeam =
  (key: string): Deed =>
  (hf, tx) =>
    call(ever(hf).consume, tx, key, 4, { operationId: 'same', scope: 'team' })

const ids: Readonly<Record<string, Case>> = {
  'twice at once': {
    before,
    flows: { a: alone(consume('same')), b: joined(consume('same')) },
    most: two,
  },
  'thrice at once': {
    before,
    flows: {
      a: alone(consume('same')),
      b: alone(consume('same'), { ledger: { coalesce: false } }),
      c: joined(consume('same')),
    },
    most: three,
  },
  'at once for something else': {
    before,
    flows: { a: alone(consume('same', 4)), b: joined(consume('same', 3)) },
    most: two,
  },
  // A unique violation, and tried again.
  'at once for two accounts': {
    flows: { a: alone(inTeam('ann')), b: alone(inTeam('bob')) },
    most: two,
  },
}

test.each(sample(Object.entries(ids), 6))(
  'an id is used %s',
  async (_, { most, ...once }) => {
    expect(await stage.explore({ ...once, deadlocks: 'fail' })).toBeExhausted(most)
  },
  patienceMs,
)

/** What one process asks for at once goes out as one call. */
const together =
  (...deeds: readonly Deed[]): Flow =>
  async ({ pool }) => {
    const hf = createHoldfast(fromPg(pool))
    return (await Promise.all(deeds.map((deed) => deed(hf, undefined)))).map(told)
  }

const batches: Readonly<Record<string, Case>> = {
  'in opposite orders': {
    before,
    flows: {
      a: together(consume('a', 3), consume('b', 3, 'bob')),
      b: together(consume('c', 3, 'bob'), consume('d', 3)),
    },
    most: two,
  },
  'and not all of it fits': {
    before,
    flows: {
      a: together(consume('a', 4), consume('b', 4)),
      b: together(consume('c', 4), consume('d', 4)),
    },
    most: two,
  },
  'under an id that both have': {
    before,
    flows: {
      a: together(consume('same', 3), consume('b', 3, 'bob')),
      b: together(consume('same', 3), consume('d', 3, 'bob')),
    },
    most: two,
  },
}

test.each(sample(Object.entries(batches), 6))(
  'two processes send two operations each, %s',
  async (_, { most, ...once }) => {
    expect(await stage.explore({ ...once, deadlocks: 'fail' })).toBeExhausted(most)
  },
  patienceMs,
)

describe('one operation on several accounts', () => {
  const both =
    (operationId: string, backwards: boolean): Deed =>
    async (hf, tx) => {
      const lines = [await ever(hf).line('ann', 4), await month(hf).line('ann', 4)]
      const options = { operationId, scope: 'ann' }
      return await call(hf.ledger.apply, tx, backwards ? lines.toReversed() : lines, options)
    }
  const flows = {
    a: alone(both('a', false)),
    b: alone(both('b', true)),
    c: joined(consume('c', 4)),
  }

  const pasts: readonly [string, Past][] = [
    ['that are open', { before: (hf) => both('past', false)(hf, undefined) }],
    ['that are not there yet', {}],
  ]
  test.each(sample(pasts))(
    '%s, whatever the order of its lines',
    async (_, past) => {
      const report = await stage.explore({ ...past, flows, deadlocks: 'fail' })
      expect(report).toBeExhausted(three)
    },
    patienceMs,
  )
})

describe("in a caller's transaction", () => {
  const inOrder =
    (id: string, ...keys: readonly string[]): Flow =>
    async ({ pool }) => {
      const hf = createHoldfast(fromPg(pool))
      return await hf.transaction(async (tx) => {
        const verdicts: unknown[] = []
        for (const key of keys) verdicts.push(told(await consume(`${id} ${key}`, 6, key)(hf, tx)))
        return verdicts
      })
    }

  test(
    'operations in opposite orders meet in a circle, and are tried again',
    async () => {
      const report = await stage.explore({
        before,
        flows: { a: inOrder('a', 'ann', 'bob'), b: inOrder('b', 'bob', 'ann') },
      })
      expect(report).toBeExhausted({ classes: 20, schedules: 24 })
      expect(report.coverage.deadlocks).toBeGreaterThan(0)
    },
    patienceMs,
  )

  const at =
    (isolation: Isolation, deed: Deed): Flow =>
    async ({ pool }) => {
      const hf = createHoldfast(fromPg(pool))
      return told(await hf.transaction((tx) => deed(hf, tx), { isolation }))
    }

  test.each(
    sample(
      [
        ['repeatable read', 'read committed'],
        ['repeatable read', 'repeatable read'],
        ['serializable', 'serializable'],
      ] as const,
      2,
    ),
  )(
    'at %s and %s what fails is tried again',
    async (one, other) => {
      const flows = { a: at(one, consume('a')), b: at(other, consume('b')) }
      expect(await stage.explore({ before, flows })).toBeExhausted(two)
    },
    patienceMs,
  )
})
