import type { DemoOptions } from '../demo/run-demo.ts'
import type { ProgressStream } from '../report/progress.ts'

/** Thrown by `out`: there is nobody left to write for. */
export class NobodyReads extends Error {}

/** Where a command reads and writes, and what it starts. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  out(text: string): unknown
  err(text: string): unknown
  /** Where progress is shown. */
  readonly screen: ProgressStream
  readonly explore: DemoOptions['explore']
  /** Files beside the command that run in processes of their own. */
  readonly programs: { readonly recorder: URL; readonly prover: URL }
}
