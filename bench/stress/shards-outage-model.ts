/** What an application of `stress -- shards --outage` is told when it starts. */
export interface OutageSetup {
  readonly urls: Readonly<Record<string, string>>
  /** What it was told and did is appended here. */
  readonly file: string
  /** Keys of the primary that fails, whose buckets are moved away from it. */
  readonly moved: readonly string[]
  /** Keys of the primary that fails, which stay there. */
  readonly failing: readonly string[]
  /** Keys of all other primaries. */
  readonly others: readonly string[]
  /** Between two operations of each of its workers. */
  readonly thinkMs: number
  /** For the control: jobs are claimed from one primary after the other, without a limit. */
  readonly inTurn: boolean
}

/** What it is told later: to say how much it has done, and perhaps to add no more jobs. */
export interface OutageOrder {
  readonly noMoreJobs?: boolean
}

/** What it has done on primaries that did not fail. */
export interface OutageCounts {
  readonly operations: number
  readonly jobs: number
}

export const queue = 'jobs'
