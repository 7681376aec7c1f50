import { inspect } from 'node:util'
import { invalid } from '../../core/known-options.ts'
import type { FlowOutcome, Said } from '../../core/model.ts'
import { lookInto, type SeenAnswer } from '../answer/answer-tree.ts'
import { flowIdentity } from '../connection/flow-identity.ts'
import { traceparentOf } from '../connection/http-identity.ts'
import type { FlowContext } from '../options.ts'
import { legible, returned, threw, troubleIn } from '../answer/outcome.ts'
import { addLane, nameOf, type Play, seen } from './play.ts'
import type { FlowEnd } from '../answer/said.ts'
import { createTransactionRecord } from '../footprint/transaction-record.ts'

/** Runs one flow as it is, from its first line to its end. Nobody waits for it, so it must not reject. */
export async function perform(play: Play, flow: number): Promise<void> {
  const performer = play.performers[flow]
  const body = play.setting.flows[flow]
  if (!performer || !body) throw new RangeError(`no flow ${flow}`)
  let end: FlowEnd
  let inside: SeenAnswer
  try {
    const context = contextOf(play, flow)
    const whole = await flowIdentity.run(performer.identity, async () => {
      const answer: unknown = await body(context)
      return { answer, inside: await lookInto(answer) }
    })
    end = { answer: whole.answer }
    inside = whole.inside
  } catch (error) {
    const read = legible(error)
    end = { error: read }
    inside = await lookInto(read instanceof Error ? undefined : read)
    if (!performer.outcome) play.trouble ??= troubleIn(read, flow, nameOf(play, flow))
  }
  performer.identity.ended = performer.outcome === undefined
  // Whatever a crashed flow still does, nobody hears of it.
  performer.outcome ??= outcomeOf(play, flow, end, inside)
  seen(play, flow)
}

/** What the user says of it comes first. If that goes wrong, the run comes to its end and explore() rejects. */
function outcomeOf(play: Play, flow: number, end: FlowEnd, inside: SeenAnswer): FlowOutcome {
  const what = `what ${nameOf(play, flow)} ${'error' in end ? 'threw' : 'returned'}`
  let said: Said | undefined
  try {
    const told: unknown = play.setting.classify?.(end)
    if (isSaid(told)) said = told
    else if (told !== undefined) {
      play.failure ??= invalid(
        `outcome() must return 'accepted', 'refused', 'failed' or undefined; for ${what} it gave ${inspect(told, { depth: 0 })}`,
      )
    }
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    play.failure ??= new Error(`outcome() threw for ${what}: ${message}`, { cause })
  }
  return 'error' in end ? threw(end.error, inside, said) : returned(end.answer, inside, said)
}

const words: readonly unknown[] = ['accepted', 'refused', 'failed'] satisfies Said[]

function isSaid(told: unknown): told is Said {
  return words.includes(told)
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
