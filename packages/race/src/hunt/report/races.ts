/** The proofs of a hunt with their names, as all that is handed over tells them. */
import type { Failure, Report } from '../../core/model.ts'
import { type Explanation, explainFailure } from '../../report/explain.ts'
import type { HuntedPair, HuntReport } from '../model.ts'

/** A proven pair. */
export interface Race {
  readonly pair: HuntedPair
  readonly report: Report
  readonly failure: Failure
  readonly explanation: Explanation
}

export function racesOf({ pairs }: HuntReport): readonly Race[] {
  return pairs.flatMap((pair) => {
    const { report } = pair
    const failure = report?.failure
    if (report === undefined || failure === undefined) return []
    return [{ pair, report, failure, explanation: explainFailure(report, failure) }]
  })
}
