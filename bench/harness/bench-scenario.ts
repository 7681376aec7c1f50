import type { Comparison } from './compare.ts'

/** What `npm run bench` can run. */
export interface BenchScenario {
  readonly about: string
  /** How it is measured, in words that let a reader doubt it. */
  readonly method: string
  run(options: {
    /** Everything within 45 seconds, server start included. */
    readonly quick: boolean
    readonly progress: (text: string) => void
  }): Promise<readonly Comparison[]>
}
