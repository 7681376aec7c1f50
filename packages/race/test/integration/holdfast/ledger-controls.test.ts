import { sample } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { creditDeeds, granted } from './credit-deeds.ts'
import { alone, type Deeds, flowsOf } from './deed.ts'
import { patienceMs } from './expectations.ts'
import { ledgerStage, type Past } from './ledger-stage.ts'
import { heldDue, heldOpen, quotaDeeds } from './quota-deeds.ts'
import { stocked, stockDeeds } from './stock-deeds.ts'
import { withoutLateLookup, withoutOrder, withoutRowLocks } from './weakened.ts'

/** The same explorations with a piece cut out of our SQL: each has to be found. */

describe('without the row locks', () => {
  const stage = ledgerStage(withoutRowLocks)
  const cases: readonly [string, string, Deeds, Past][] = [
    ['consume', 'consume', quotaDeeds, heldOpen],
    ['consume', 'hold', quotaDeeds, heldOpen],
    ['consume', 'set limit', quotaDeeds, heldOpen],
    ['refund', 'refund', quotaDeeds, heldOpen],
    ['settle', 'release', quotaDeeds, heldOpen],
    ['extend', 'release', quotaDeeds, heldOpen],
    ['settle', 'sweep', quotaDeeds, heldDue],
    ['sweep', 'sweep', quotaDeeds, heldDue],
    ['grant', 'spend', creditDeeds, granted],
    ['issue', 'issue backwards', stockDeeds, stocked],
    ['reserve', 'settle', stockDeeds, stocked],
    ['move south', 'move south', stockDeeds, stocked],
  ]
  test.each(sample(cases, 12))(
    '%s and %s',
    async (one, other, deeds, past) => {
      const report = await stage.explore({
        ...past,
        flows: flowsOf(deeds, [one, other]),
        async invariant({ outcomes }) {
          // Where a constraint still saves the balance, somebody is told an error.
          for (const { kind } of Object.values(outcomes)) expect(kind).toBe('returned')
        },
      })
      expect(report).toBeCaught()
    },
    patienceMs,
  )
})

describe('without the order of the locks', () => {
  const stage = ledgerStage(withoutOrder)

  // A call takes all of its locks in one step, unless somebody is in the way of one of them.
  test(
    'two orders and somebody who works on one of the articles wait in a circle',
    async () => {
      const report = await stage.explore({
        ...stocked,
        flows: flowsOf(stockDeeds, ['issue', 'issue backwards', 'adjust']),
        deadlocks: 'fail',
      })
      expect(report).toBeCaught(/circle/)
    },
    patienceMs,
  )
})

describe('without the look for known ids after the locks', () => {
  const stage = ledgerStage(withoutLateLookup)

  test(
    'the same operation is applied twice',
    async () => {
      const deed = quotaDeeds['consume']?.('same')
      if (deed === undefined) throw new Error('no deed')
      const report = await stage.explore({
        ...heldOpen,
        flows: { one: alone(deed), other: alone(deed) },
      })
      expect(report).toBeCaught()
    },
    patienceMs,
  )
})
