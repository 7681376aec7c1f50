import type { Random } from '../../bench/harness/random.ts'
import type { Application } from './application.ts'
import type { Recorder } from './recorder.ts'

/** A protection that a control goes without. */
export type Missing = 'guard' | 'fence'

/** What an actor works with. */
export interface Stage<Tx> {
  readonly app: Application<Tx>
  readonly recorder: Recorder
  readonly random: Random
  /** Of the process: unique among all that ever lived in this episode. */
  readonly process: string
  /** From 0; the same for whoever takes the place of one that was killed. */
  readonly index: number
  readonly stopping: AbortSignal
  readonly without: ReadonlySet<Missing>
  /** Breathes in between two operations. */
  pace(): Promise<void>
  /** A number that goes up every so often, at the same moment in all processes. */
  slot(everyMs: number): number
}

/** The part of a workload that runs in the crew's processes, until it is told to stop. */
export interface Actor {
  readonly workload: string
  /** How many of them work at the same time in one process. */
  readonly copies: number
  act<Tx>(stage: Stage<Tx>): Promise<void>
}

/** An id that nobody else has, and that says whose it is. */
export function newId({ process }: Pick<Stage<unknown>, 'process'>): string {
  ids += 1
  return `${process}-${ids}`
}

let ids = 0
