/** Where a flow can end before its time. */
import type { Choice, Run } from '../core/model.ts'
import type { Planned } from './policy.ts'
import { fingerprintOf } from './trace.ts'

/** The steps up to a place, and the flow that crashes there. */
export interface CrashPoint {
  readonly plan: readonly Planned[]
  /** Place in the run that the flow does not outlive. */
  readonly index: number
  readonly action: 'crash' | 'lose-answer'
}

/**
 * Before every step of every flow; and after every step that makes something last, before its answer
 * arrives. After any other step the server forgets what the connection did, which is what a crash
 * before the next step shows.
 */
export function crashPoints(run: Run): CrashPoint[] {
  return run.steps.flatMap(({ choice, footprint }, index) => {
    if (choice.action !== 'go') return []
    const before = run.steps
      .slice(0, index)
      .map((step, place) => ({ choice: step.choice, fingerprint: fingerprintOf(run, place) }))
    const point = (action: 'crash' | 'lose-answer'): CrashPoint => {
      const last: Choice = { ...choice, action }
      return { plan: [...before, { choice: last }], index, action }
    }
    return footprint.ends?.how === 'commit' || footprint.opaque
      ? [point('crash'), point('lose-answer')]
      : [point('crash')]
  })
}
