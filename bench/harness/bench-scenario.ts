import type { Comparison } from './compare.ts'

/** A table of what was measured besides the ratios. */
export interface FactTable {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export interface BenchResult {
  /** How it was measured, where that is not what the scenario says. */
  readonly method?: string
  readonly comparisons: readonly Comparison[]
  readonly facts?: readonly FactTable[]
}

/** Products besides PostgreSQL that a scenario can be measured on. */
export const engines = ['mariadb', 'mysql', 'sqlite'] as const
export type Engine = (typeof engines)[number]

/** What `npm run bench` can run. */
export interface BenchScenario {
  readonly about: string
  /** It can be measured on other products as well. @defaultValue false */
  readonly hasEngines?: true
  /** It can be measured up to a size that is asked for. @defaultValue false */
  readonly hasMost?: true
  /** How it is measured, in words that let a reader doubt it. */
  readonly method: string
  run(options: {
    /** Everything within a minute, server start included. */
    readonly quick: boolean
    /** Asked for by name, where a scenario has several. @defaultValue PostgreSQL */
    readonly engine: Engine | undefined
    /** Of a scenario that `hasMost`: the size of the largest. @defaultValue what the scenario takes by itself */
    readonly most?: number | undefined
    readonly progress: (text: string) => void
  }): Promise<BenchResult>
}
