/** What the hunt asks of the explorer. It is handed in, so that the hunt knows nothing of how it searches. */
import type { FlowOutcome, Note, Progress, Report, Step } from '../core/model.ts'
import type { MomentKind } from '../report/anomaly/history.ts'
import type { DatabaseContext, Flow } from '../run/options.ts'
import type { Classify } from '../run/answer/said.ts'

/** A statement of a call that was run alone. */
export interface RecordedStep extends Step {
  readonly kind: MomentKind
}

export interface Recording {
  readonly steps: readonly RecordedStep[]
  readonly outcome: FlowOutcome
  readonly notes: readonly Note[]
  readonly server: string
}

/** Whether others can act inside of an SQL function or a trigger; see `ExploreOptions`. */
export type Functions = 'open' | 'atomic'

interface Common {
  readonly url: string
  readonly name: string
  readonly seed: (database: DatabaseContext) => Promise<unknown>
  readonly outcome?: Classify
}

/** `explore()` and `record()`. */
export interface Engine {
  record(options: Common & { readonly flow: Flow; readonly oracle: false }): Promise<Recording>
  explore(
    options: Common & {
      readonly flows: Readonly<Record<string, Flow>>
      readonly functions: Functions
      readonly budget: { readonly schedules: number; readonly ms: number }
      readonly onProgress: (progress: Progress) => void
    },
  ): Promise<Report>
}
