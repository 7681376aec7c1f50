import type { Report } from '../core/model.ts'
import { assertReport } from './assert-report.ts'
import type { AnomalyName } from './anomaly/anomaly.ts'
import { explainFailure } from './explain.ts'
import type { Fix } from './fix/fix.ts'

export type { AnomalyName } from './anomaly/anomaly.ts'
export type { Fix } from './fix/fix.ts'

/** What a report says about its race, as data. */
export interface RaceExplanation {
  readonly anomaly: AnomalyName
  /** The name and what it means. */
  readonly title: string
  /** What happened; steps are named by number, from 1. */
  readonly why: string
  /** Who must have come before whom, and why: round in a circle. Empty if none is known. */
  readonly cycle: readonly string[]
  /** Ways out, the one to try first at the front. */
  readonly fixes: readonly Fix[]
}

/** Names the race of a report, says why it happened and what helps; undefined if there is none. */
export function explainRace(report: Report): RaceExplanation | undefined {
  assertReport(report, 'explainRace()')
  if (report.failure === undefined) return undefined
  const { anomaly, title, why, cycle, fixes } = explainFailure(report, report.failure)
  return { anomaly, title, why, cycle, fixes }
}
