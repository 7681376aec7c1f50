import type { ExploreOptions } from '../../packages/race/src/index.ts'

/** A published race: which release has it, and how its own public interface is called. */
export interface RealBug {
  /** As npm knows it: `knex@0.95.11`. */
  readonly release: string
  /** What else has to be installed for it: `drizzle-orm@0.45.4`. The driver always is. */
  readonly beside?: readonly string[]
  /** What the two processes do. */
  readonly scene: string
  /** What is known about this release. */
  readonly known: 'race' | 'race-free'
  /** Runs once on the empty database; gives what is explored on it. */
  prepare(load: NodeJS.Require, url: string, scratch: string): Promise<Scene>
}

export type Flow = ExploreOptions['flows'][string]

/** One flow, run twice at once. It must not fail, and leave what some serial order leaves. */
export interface Scene {
  readonly seed: string
  readonly flow: Flow
  /** For trials without the explorer, which has no need of it: true if the state is as it must be. */
  readonly check: string
  /** For the same trials, if the state alone does not tell: true if the two answers fit together. */
  readonly fit?: (answers: readonly unknown[]) => boolean
}
