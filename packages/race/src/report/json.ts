import type { Failure, Place, Report } from '../core/model.ts'
import { assertReport } from './assert-report.ts'
import { differenceOf, faultOf } from './difference.ts'
import { explainFailure } from './explain.ts'
import type { Fix } from './fix/fix.ts'
import { stepText } from './timeline.ts'

/** A report as data for other programs. What is here stays; more may be added. */
export interface JsonReport {
  readonly format: 1
  readonly name: string
  readonly verdict: Report['verdict']
  readonly flows: readonly string[]
  readonly server: string
  readonly exhaustive: boolean
  readonly schedules: number
  readonly classes: number
  /** Orders of the steps; a text, because it may be larger than a number can be. */
  readonly interleavings: string
  readonly milliseconds: number
  readonly race?: JsonRace
  readonly trouble?: { readonly kind: string; readonly message: string }
  readonly notes: readonly string[]
}

/** The race: what it is called, what happened, and what helps. */
export interface JsonRace {
  readonly anomaly: string
  readonly title: string
  /** What is wrong with the result, in one line. */
  readonly found: string
  readonly why: string
  readonly cycle: readonly string[]
  readonly fixes: readonly Fix[]
  /** Replays the schedule: `HOLDFAST_RACE_REPLAY`. */
  readonly token: string
  readonly reproduced: readonly [number, number]
  readonly steps: readonly JsonStep[]
}

/** One step of the failing run, in its order. */
export interface JsonStep {
  /** As `why` counts them: the first is 1. */
  readonly number: number
  readonly flow: string
  readonly statement: string
  readonly sqlstate?: string
  readonly waitedFor: readonly string[]
  /** What part it has in the race. */
  readonly role?: string
  readonly from?: Place
}

/** The report as JSON text, for other programs. Values of parameters are in its statements. */
export function jsonReport(report: Report): string {
  assertReport(report, 'jsonReport()')
  const { name, verdict, flows, server, coverage, failure, trouble, notes } = report
  const data: JsonReport = {
    format: 1,
    name,
    verdict,
    flows,
    server,
    exhaustive: coverage.exhaustive,
    schedules: coverage.schedules,
    classes: coverage.classes,
    interleavings: String(coverage.interleavings),
    milliseconds: Math.round(coverage.milliseconds),
    ...(failure && { race: raceOf(report, failure) }),
    ...(trouble && { trouble: { kind: trouble.kind, message: trouble.message } }),
    notes: notes.map(({ message }) => message),
  }
  return `${JSON.stringify(data, null, 2)}\n`
}

function raceOf(report: Report, failure: Failure): JsonRace {
  const { anomaly, title, why, cycle, fixes, history, marks } = explainFailure(report, failure)
  return {
    anomaly,
    title,
    found: faultOf(failure, differenceOf(failure, report)),
    why,
    cycle,
    fixes,
    token: failure.token,
    reproduced: failure.reproduced,
    steps: history.moments.map((moment): JsonStep => {
      const { step, number, who } = moment
      const role = marks.get(step.index)?.role
      const { error } = step.answer
      return {
        number,
        flow: who,
        statement: stepText(moment, Number.POSITIVE_INFINITY),
        ...(error && { sqlstate: error.sqlstate }),
        waitedFor: step.waitedFor.map((flow) => report.flows[flow] ?? '?'),
        ...(role && { role }),
        ...(step.from && { from: step.from }),
      }
    }),
  }
}
