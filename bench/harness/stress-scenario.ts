import type { EngineName } from '../engines/engine.ts'

/** A control is the same attack with the protection taken away: it must be seen to fail. */
export type ControlOutcome = 'caught' | 'missed'

export interface StressResult {
  /** Protected operations that ran; those of the controls do not count. */
  readonly operations: number
  /** What should not have happened, one sentence each. */
  readonly violations: readonly string[]
  readonly controls: Readonly<Record<string, ControlOutcome>>
  /** What was done, for people. */
  readonly notes: readonly string[]
  /** How often what was generated, by sort; shown with `--json`. */
  readonly coverage?: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** What was measured against the same run; shown with `--json`. */
  readonly ratios?: Readonly<Record<string, number>>
  /** What was counted, by the names that it has in the object of `--json`. */
  readonly figures?: Readonly<Record<string, number>>
}

/** What `npm run stress` can run. */
export interface StressScenario {
  readonly about: string
  /** Names that `--control` takes. */
  readonly controls?: readonly string[]
  /** Products that it runs on besides PostgreSQL. */
  readonly engines?: readonly EngineName[]
  /** Names that `--only` takes. */
  readonly names?: readonly string[]
  run(options: {
    readonly engine: EngineName
    /** About how long to run; without it the scenario does its full number of rounds. */
    readonly seconds: number | undefined
    /** The same seed makes the same choices. */
    readonly seed: number
    /** How many operations to do, for scenarios that count them. */
    readonly count?: number | undefined
    /** Run this control only, for scenarios that can. */
    readonly control?: string | undefined
    /** Run this one of `names` only, without controls. */
    readonly only?: string | undefined
    readonly progress: (text: string) => void
  }): Promise<StressResult>
}
