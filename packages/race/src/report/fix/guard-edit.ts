/** A transaction of the code that becomes a guard of Holdfast's. */
import type { History, Moment } from '../anomaly/history.ts'

/** From the check to the write, all of which is to be inside. */
export interface GuardEdit {
  readonly file: string
  /** Lines of the check and of the write. */
  readonly from: number
  readonly to: number
  /** `lockKey('user', userId)`: its name, and the variable or text that says which. */
  readonly name: string
  readonly part: string
}

/** Only where everybody comes by the same line: whoever comes by another one would take no lock. */
export function guardEdit(
  { moments, flows }: History,
  [read, write]: readonly [Moment, Moment | undefined],
  key: Pick<GuardEdit, 'name' | 'part'>,
): GuardEdit | undefined {
  const [check, change] = [read.step.from, write?.step.from]
  if (check === undefined || change === undefined || check.file !== change.file) return undefined
  const here = moments.filter(
    ({ step: { from } }) => from?.file === check.file && from.line === check.line,
  )
  if (new Set(here.map(({ step }) => step.flow)).size < flows.length) return undefined
  const [from = 0, to = 0] = [check.line, change.line].toSorted((one, other) => one - other)
  return { file: check.file, from, to, ...key }
}
