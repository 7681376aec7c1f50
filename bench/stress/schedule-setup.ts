/** What an instance is told; see schedule.ts. */
export interface InstanceSetup {
  readonly url: string
  /** With a lock that is only tried, instead of a schedule. */
  readonly control: boolean
  readonly skewsMs: readonly number[]
}

/** A tick so often. */
export const everyMs = 100
