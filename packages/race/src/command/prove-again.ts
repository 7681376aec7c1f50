/** In a process of its own: loads the application, and runs two calls at once from rows that a test has. */
import { createAttempt, sayOf } from '../hunt/prove/attempt.ts'
import type { Engine, Functions } from '../hunt/engine.ts'
import type { Call, Input } from '../hunt/model.ts'
import { exploreTrial } from '../hunt/prove/prove.ts'
import { anyRule, createRefusals } from '../hunt/edges/refusals.ts'
import { openStates, type States } from '../hunt/states.ts'
import type { Report } from '../core/model.ts'
import { fillRows, type NamedRows } from '../run/state/named-rows.ts'
import { type OpenApplication, openApplication, type Opening } from './open-application.ts'

/** What is sent: a request, or the values of a function that the application file has under this name. */
export interface CallAgain {
  readonly name: string
  readonly input: Input
  /** Answers that say no with a status of 2xx, as for `--refused`: `ok=false`. */
  readonly refused?: readonly string[]
}

/** Two calls and the rows before them. Plain data. */
export interface AgainTask extends Opening {
  readonly name: string
  readonly again: readonly [CallAgain, CallAgain]
  readonly rows: NamedRows
  readonly functions: Functions
  readonly budget: { readonly schedules: number; readonly ms: number }
}

export async function proveAgain(task: AgainTask, engine: Engine): Promise<Report> {
  const { name, again, rows, url, budget, functions } = task
  await using application = await openApplication(task)
  await using states = await openStates(url)
  await fillRows(states.control.client, rows)
  const before = await states.take()
  const refusals = createRefusals(application.outcome)
  for (const { name: call, refused = [] } of again) {
    if (refused.length > 0) refusals.learn(call, anyRule(refused))
  }
  const outcome = refusals.classify
  const [one, other] = again
  const calls = [
    refusals.held(callOf(one, before, application)),
    refusals.held(callOf(other, before, application)),
  ] as const
  const inputs = [one.input, other.input] as const
  const attempt = createAttempt(sayOf(outcome))
  // Where one of them is refused anyway nothing is shown, and a test that passes would be worth nothing.
  for (const [at, call] of calls.entries()) {
    await states.putBack(before)
    const { said } = await attempt(call.send, inputs[at] as Input)
    if (said === 'accepted') continue
    throw new Error(
      `${call.name} is ${said} by itself from the rows of this test, so that it shows nothing any more. Look what it answers; if that is right, make the test again with hunt --write-tests`,
    )
  }
  await states.rest()
  const trial = { state: before, inputs, calls }
  const proving = { engine, url, outcome, functions }
  return await states.orStopped(exploreTrial(name, trial, budget, proving))
}

function callOf(
  { name, input }: CallAgain,
  before: Awaited<ReturnType<States['take']>>,
  { sendOf }: OpenApplication,
): Call {
  const send = sendOf(name, input.kind)
  if (send) return { number: 0, name, input, answer: undefined, said: 'accepted', before, send }
  throw new Error(
    input.kind === 'http'
      ? 'the file of the application has nothing that answers requests: export it as `app`'
      : `the file of the application has no function ${name} in \`calls\``,
  )
}
