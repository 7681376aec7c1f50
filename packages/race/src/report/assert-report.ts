import type { Report } from '../core/model.ts'

/** For calls from JavaScript, and for reports that were not waited for. */
export function assertReport(report: unknown, who: string): asserts report is Report {
  const known = typeof report === 'object' && report !== null && 'verdict' in report
  if (known && 'coverage' in report) return
  throw new TypeError(`${who} needs a report of explore(); was an await forgotten?`)
}
