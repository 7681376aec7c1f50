import { expect } from 'vitest'
import type { Report } from '../../../src/core/model.ts'
import { formatReport } from '../../../src/report/terminal/format-report.ts'

/** For one test, on a machine that does much else: what ends, ends long before. */
export const patienceMs = 120_000
export const budget = { schedules: 2_000, ms: 100_000 }

/** What a search may need at most. */
export interface Bounds {
  readonly classes: number
  readonly schedules: number
}

declare global {
  namespace Chai {
    interface Assertion {
      /** Every class was run, nothing was found, and it took no more than this. */
      toBeExhausted(most: Bounds): void
      /** A control: without its protection it is found to be wrong, and again in every replay. */
      toBeCaught(message?: RegExp): void
    }
  }
}

/** Of three flows: they are run beside the search, and not as a part of it. */
const serialOrders = 6

/** Retries, timers and clocks of ours must not look like chance. */
const doubts = new Set(['nondeterminism', 'uncontrolled-wait'])

function isExhausted({ verdict, coverage, notes }: Report, most: Bounds): boolean {
  const { exhaustive, overlapped, classes, schedules } = coverage
  return (
    verdict === 'race-free' &&
    exhaustive &&
    overlapped &&
    !notes.some(({ kind }) => doubts.has(kind)) &&
    classes <= most.classes &&
    schedules <= most.schedules + serialOrders
  )
}

function isCaught({ verdict, failure }: Report, message: RegExp): boolean {
  const [again, of] = failure?.reproduced ?? [0, 1]
  return (
    verdict === 'race' && failure !== undefined && message.test(failure.message) && again === of
  )
}

expect.extend({
  toBeExhausted(report: Report, most: Bounds) {
    const wanted = `at most ${most.classes} classes in ${most.schedules} schedules`
    return { pass: isExhausted(report, most), message: () => `${wanted}\n${formatReport(report)}` }
  },
  toBeCaught(report: Report, message: RegExp = /./) {
    return { pass: isCaught(report, message), message: () => formatReport(report) }
  },
})
