import { describe, expect, test } from 'vitest'
import { creditDeeds, granted } from './credit-deeds.ts'
import { type Deeds, flowsOf, triplesOf } from './deed.ts'
import { patienceMs } from './expectations.ts'
import { ledgerStage, type Past } from './ledger-stage.ts'
import { heldDue, heldOpen, quotaDeeds } from './quota-deeds.ts'
import { stocked, stockDeeds } from './stock-deeds.ts'

const stage = ledgerStage()

type Triple = [string, string, string]

/** Every three of a book take minutes, not seconds. */
const all = process.env['HOLDFAST_ALL_TRIPLES'] === '1'

function chosen(deeds: Deeds, some: readonly Triple[]): readonly Triple[] {
  return all ? triplesOf(Object.keys(deeds)) : some
}

const endings = triplesOf(['consume', 'settle', 'release', 'extend', 'sweep'])

const books: readonly [string, Deeds, Past, readonly Triple[]][] = [
  [
    'quota, a hold that is open',
    quotaDeeds,
    heldOpen,
    chosen(quotaDeeds, [
      ['settle', 'release', 'extend'],
      ['consume', 'hold', 'refund'],
      ['consume', 'settle', 'set limit'],
      ['hold', 'adjust', 'release'],
    ]),
  ],
  ['quota, a hold that is due', quotaDeeds, heldDue, chosen(quotaDeeds, endings)],
  [
    'credits',
    creditDeeds,
    granted,
    chosen(creditDeeds, [
      ['grant', 'spend', 'refund'],
      ['spend', 'settle', 'void'],
      ['hold', 'release', 'sweep'],
    ]),
  ],
  [
    'stock',
    stockDeeds,
    stocked,
    chosen(stockDeeds, [
      ['issue', 'issue backwards', 'adjust'],
      ['issue', 'reserve', 'settle'],
      ['move south', 'move north', 'release'],
    ]),
  ],
]

// As many as three callers of a guarded insert have.
const most = { classes: 30, schedules: 40 }

describe.each(books)('%s: three at once', (_, deeds, past, triples) => {
  test.each(triples)(
    '%s, %s and %s',
    async (...names) => {
      const report = await stage.explore({ ...past, flows: flowsOf(deeds, names) })
      expect(report).toBeExhausted(most)
      expect(report.coverage.deadlocks).toBe(0)
    },
    patienceMs,
  )
})
