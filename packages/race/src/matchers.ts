import type { Report } from './core/model.ts'
import { judgeHasRace, judgeRaceFree, type RaceFreeOptions } from './assert-race-free.ts'

/** What `expect.extend` takes, in vitest and in jest. */
export interface MatcherResult {
  readonly pass: boolean
  readonly message: () => string
}

/** The matchers themselves, for `expect.extend(raceMatchers)`. */
export const raceMatchers: {
  toBeRaceFree(report: unknown, options?: RaceFreeOptions): MatcherResult
  toHaveRace(report: unknown, pattern?: RegExp | string): MatcherResult
} = {
  toBeRaceFree(report, options) {
    const { pass, message } = judgeRaceFree(report as Report, options)
    return { pass, message: () => `\n${message()}` }
  },
  toHaveRace(report, pattern) {
    const { pass, message } = judgeHasRace(report as Report, pattern)
    return { pass, message: () => `\n${message()}` }
  },
}

/** What the matchers add to `expect(report)`. */
export interface RaceMatchers<R = unknown> {
  /**
   * No race was found, every class of interleavings was run, and the flows did overlap.
   * `{ bounded: true }` accepts a search that ended with its budget.
   */
  toBeRaceFree(options?: RaceFreeOptions): R
  /** A race was found; its message, name or explanation matches. For showing that a test can fail. */
  toHaveRace(pattern?: RegExp | string): R
}
