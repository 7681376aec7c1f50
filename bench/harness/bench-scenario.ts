import type { Comparison } from './compare.ts'

/** A table of what was measured besides the ratios. */
export interface FactTable {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export interface BenchResult {
  readonly comparisons: readonly Comparison[]
  readonly facts?: readonly FactTable[]
}

/** What `npm run bench` can run. */
export interface BenchScenario {
  readonly about: string
  /** How it is measured, in words that let a reader doubt it. */
  readonly method: string
  run(options: {
    /** Everything within a minute, server start included. */
    readonly quick: boolean
    readonly progress: (text: string) => void
  }): Promise<BenchResult>
}
