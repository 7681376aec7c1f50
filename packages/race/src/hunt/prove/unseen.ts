/** What the explorer does not see of a call: work after its answer, and statements of other clients. Nothing is refuted then. */
import { setTimeout } from 'node:timers/promises'
import { type FlowIdentity, flowIdentity } from '../../run/connection/flow-identity.ts'
import { wasLate } from '../../run/connection/latecomers.ts'
import type { Call } from '../model.ts'

/** How long the last call that was looked at may take to show that it goes on. */
const lateMs = 300

export const goesOn =
  'goes on after it has answered, and what it does then is in no order that is run: await it, or give that work a name by call()'
export const otherClient =
  'another client has sent statements to the database meanwhile, and in which order they come is not tried: use pg in both calls, and no jobs beside them'

export interface AfterAnswers {
  /** Sends the call alone; what comes after its answer is noted. */
  send(call: Call): Promise<unknown>
  /** Names of the calls that have sent statements after they had answered. */
  names(): Promise<ReadonlySet<string>>
}

export function watchAfterAnswers(): AfterAnswers {
  const identities = new Map<Call, FlowIdentity>()
  return {
    send(call) {
      const identity = flowIdentity.getStore()
      if (identity) identities.set(call, identity)
      return call.send(call.input)
    },
    async names() {
      if (identities.size > 0) await setTimeout(lateMs)
      const late = [...identities].filter(([, identity]) => wasLate(identity))
      return new Set(late.map(([{ name }]) => name))
    },
  }
}
