import type { FlowOutcome } from '../core/model.ts'
import { flowIdentity } from './flow-identity.ts'
import { traceparentOf } from './http-identity.ts'
import type { FlowContext } from './options.ts'
import { returned, threw, troubleIn } from './outcome.ts'
import { addLane, nameOf, type Play, seen } from './play.ts'
import { createTransactionRecord } from './transaction-record.ts'

/** Runs one flow as it is, from its first line to its end. */
export async function perform(play: Play, flow: number): Promise<void> {
  const performer = play.performers[flow]
  const body = play.setting.flows[flow]
  if (!performer || !body) throw new RangeError(`no flow ${flow}`)
  let outcome: FlowOutcome
  try {
    const context = contextOf(play, flow)
    const answer = await flowIdentity.run(performer.identity, () => body(context))
    outcome = returned(answer, play.setting.classify)
  } catch (reason) {
    outcome = threw(reason, play.setting.classify)
    if (!performer.outcome) play.trouble ??= troubleIn(reason, flow, nameOf(play, flow))
  }
  // Whatever a crashed flow still does, nobody hears of it.
  performer.outcome ??= outcome
  seen(play, flow)
}

function contextOf(play: Play, flow: number): FlowContext {
  const wing = play.setting.stage.wings[flow]
  const performer = play.performers[flow]
  if (!wing || !performer) throw new RangeError(`no flow ${flow}`)
  const own = createTransactionRecord(play.setting.isolation)
  return {
    flow: nameOf(play, flow),
    url: wing.url,
    pool: wing.pool,
    traceparent: traceparentOf(performer.identity),
    signal: performer.abort.signal,
    step(label) {
      const free = play.lanes.find((lane) => lane.record === own && lane.status === 'idle')
      const lane = free ?? addLane(play, flow, undefined, own)
      return new Promise((resolve) => {
        lane.status = 'parked'
        lane.unit = {
          statements: [`-- ${label}`],
          parameters: [],
          parameterTypes: [],
          splittable: false,
          closesCycle: false,
        }
        lane.resume = resolve
        seen(play, flow)
      })
    },
  }
}
