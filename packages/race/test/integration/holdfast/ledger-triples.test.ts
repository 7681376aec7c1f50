import { sample } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { creditDeeds, granted } from './credit-deeds.ts'
import { type Deeds, flowsOf, triplesOf } from './deed.ts'
import { patienceMs } from './expectations.ts'
import { ledgerStage, type Past } from './ledger-stage.ts'
import { heldDue, heldOpen, quotaDeeds } from './quota-deeds.ts'
import { stocked, stockDeeds } from './stock-deeds.ts'

const stage = ledgerStage()

type Triple = [string, string, string]

/** All 308 triples take minutes, not seconds: HOLDFAST_ALL_TRIPLES=1. */
const all = process.env['HOLDFAST_ALL_TRIPLES'] === '1'

function chosen(deeds: Deeds, some: readonly Triple[]): readonly Triple[] {
  return all ? triplesOf(Object.keys(deeds)) : some
}

const books: readonly [string, Deeds, Past, readonly Triple[]][] = [
  [
    'quota, a hold that is open',
    quotaDeeds,
    heldOpen,
    chosen(quotaDeeds, [
      ['settle', 'release', 'extend'],
      ['consume', 'hold', 'refund'],
    ]),
  ],
  [
    'quota, a hold that is due',
    quotaDeeds,
    heldDue,
    chosen(quotaDeeds, [
      ...triplesOf(['settle', 'release', 'extend', 'sweep']),
      ['consume', 'settle', 'sweep'],
    ]),
  ],
  [
    'credits',
    creditDeeds,
    granted,
    chosen(creditDeeds, [
      ['grant', 'spend', 'refund'],
      ['spend', 'settle', 'void'],
    ]),
  ],
  [
    'stock',
    stockDeeds,
    stocked,
    chosen(stockDeeds, [
      ['issue', 'issue backwards', 'adjust'],
      ['move south', 'move north', 'release'],
    ]),
  ],
]

// Thirty where all of them meet, as three callers of a guarded insert have; more where some do not.
const most = { classes: 40, schedules: 42 }

// A brief run has one with time that is over and one with several accounts; any two of all books are in ledger-pairs.
describe.each(sample(books, 2, 1))('%s: three at once', (_, deeds, past, triples) => {
  test.each(sample(triples, 18))(
    '%s, %s and %s',
    async (...names) => {
      const report = await stage.explore({ ...past, flows: flowsOf(deeds, names) })
      expect(report).toBeExhausted(most)
      expect(report.coverage.deadlocks).toBe(0)
    },
    patienceMs,
  )
})
