import type { Event, Sequential } from './check-linearizable.ts'
import { checkLinearizable } from './check-linearizable.ts'
import type { Findings } from './findings.ts'

/** Each key by itself: what is linearizable key by key is so as a whole. */
export function checkKeys<State, Step>(
  findings: Findings,
  keys: ReadonlyMap<string, readonly Event<Step>[]>,
  object: Sequential<State, Step>,
): void {
  for (const [key, events] of keys) {
    const answer = checkLinearizable(events, object)
    if (answer.kind === 'impossible') {
      findings.add(
        'not_linearizable',
        `no order explains the answers about ${key}: after ${answer.placed} of ${events.length}, none of ` +
          `${answer.stuck.slice(0, 4).join('; ')} can come next`,
      )
    } else if (answer.kind === 'undecided') {
      // A check that was not made proves nothing, and must not look as if it did.
      findings.add(
        'undecided',
        `gave up on ${key} with ${events.length} after ${answer.steps} steps`,
      )
    }
  }
}
