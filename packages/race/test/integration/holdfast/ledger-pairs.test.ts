import { sample } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { creditDeeds, granted } from './credit-deeds.ts'
import { type Deeds, flowsOf, pairsOf } from './deed.ts'
import { patienceMs } from './expectations.ts'
import { ledgerStage, type Past } from './ledger-stage.ts'
import { anotherDue, quotaDeeds } from './quota-deeds.ts'
import { stocked, stockDeeds } from './stock-deeds.ts'

const stage = ledgerStage()

const books: readonly [string, Deeds, Past][] = [
  ['quota', quotaDeeds, anotherDue],
  ['credits', creditDeeds, granted],
  ['stock', stockDeeds, stocked],
]

/** The order of the lines matters only to who has them in another order. */
function isNew([one, other]: readonly string[]): boolean {
  return one !== 'issue backwards' && (other !== 'issue backwards' || one === 'issue')
}

// One after the other, or one waits for the other: two ways each.
const most = { classes: 4, schedules: 8 }

describe.each(books)('%s: any two at once, one alone and one joined', (_, deeds, past) => {
  test.each(sample(pairsOf(deeds).filter(isNew), 18))(
    '%s and %s',
    async (...names) => {
      const report = await stage.explore({ ...past, flows: flowsOf(deeds, names) })
      expect(report).toBeExhausted(most)
    },
    patienceMs,
  )
})
