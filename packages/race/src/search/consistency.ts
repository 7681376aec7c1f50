/**
 * Whether like pasts have like futures. The search takes for granted that a flow which saw the same does
 * the same; here every run is held to that, and chance in a flow is found.
 */
import type { Answer } from '../core/model.ts'
import { short } from './judge.ts'
import type { Event, Trace } from './trace.ts'

export class Consistency {
  readonly #next = new Map<string, string>()
  readonly #answers = new Map<number, string>()

  /** What in this run contradicts an earlier one; undefined if nothing does. */
  learn(trace: Trace, flows: readonly string[]): string | undefined {
    let contradiction: string | undefined
    const last = new Map<number, Event>()
    for (const event of trace.events) {
      const { step, fingerprint, node } = event
      const name = flows[step.flow] ?? `flow ${step.flow}`
      const before = last.get(step.flow)
      last.set(step.flow, event)
      const enabler = trace.events[event.enabledBy]
      const key = `${step.flow}.${step.lane}.${event.ordinal} ${before?.node} ${enabler?.node}`
      if (differs(this.#next, key, fingerprint))
        contradiction ??= `${name} sent something else after it had seen the same: ${short(step.statements.join('; '))}`
      // What a waiting statement answers is decided after it was sent, by those it waits for.
      if (step.waitedFor.length === 0 && differs(this.#answers, node, shape(step.answer)))
        contradiction ??= `${name} was answered otherwise although everything before was the same: ${short(step.statements.join('; '))}`
    }
    return contradiction
  }
}

function differs<Key>(known: Map<Key, string>, key: Key, value: string): boolean {
  const before = known.get(key)
  if (before === undefined) known.set(key, value)
  return before !== undefined && before !== value
}

/** What of an answer must be the same: not its values, which may be ids or times. */
function shape({ tag, rowCount, error }: Answer): string {
  return `${tag} ${rowCount} ${error?.sqlstate}`
}
