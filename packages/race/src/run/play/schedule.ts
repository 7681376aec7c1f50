import type { Cast, Decision, FlowOutcome, Note, Step, Trouble } from '../../core/model.ts'
import { attend } from './attend.ts'
import { apply, ask, type Decide, enabledLanes } from './choices.ts'
import { endCircle } from './deadlock.ts'
import { waitForAnything } from './give-up.ts'
import { carryIdentities } from '../connection/http-identity.ts'
import { perform } from './perform.ts'
import { createPlay, type Play, type ScheduleSetting } from './play.ts'
import { rest } from './rest.ts'
import { findCircle } from './wait-graph.ts'

/** What a schedule left behind, before anybody looked at the tables. */
export interface Played {
  readonly steps: readonly Step[]
  readonly decisions: readonly Decision[]
  readonly outcomes: readonly FlowOutcome[]
  readonly deadlocks: number
  readonly uncontrolled?: string
  readonly trouble?: Trouble
  readonly notes: readonly Note[]
  /** Flows whose ways to the database must not be used again. */
  readonly spent: readonly number[]
  /** Connections of flows that crashed; their clients have not been told. */
  readonly frozen: Play['frozen']
  /** Connections in whose session code may have left something. */
  readonly leaving: Play['leaving']
  /** What `decide` threw, or something else that was given to the exploration. */
  readonly failure: Error | undefined
  /** The end of each flow's code. */
  readonly performances: readonly (Promise<void> | undefined)[]
}

/** Plays the flows once, in the order that `decide` makes; only some of them if they are named. */
export async function playSchedule(
  setting: ScheduleSetting,
  decide: Decide,
  { only = [...setting.names.keys()], serial = false }: Cast = {},
): Promise<Played> {
  const play = createPlay(setting, only, serial)
  const forget = carryIdentities(play.performers.map(({ identity }) => identity))
  setting.stage.attend(attend(play))
  try {
    play.performers.forEach((performer, flow) => {
      if (!only.includes(flow)) performer.outcome = { kind: 'crashed' }
    })
    beginNext(play)
    if (!serial) while (beginNext(play));
    while (!play.trouble) if (!(await advance(play, decide))) break
  } catch (error) {
    play.failure ??= error instanceof Error ? error : new Error(String(error))
  } finally {
    setting.stage.attend(undefined)
    for (const { abort, identity } of play.performers) {
      identity.over = true
      abort.abort()
    }
    // Forgets what flows waited for whose run is over.
    play.elsewhere.stop()
    forget()
  }
  return {
    steps: play.steps,
    decisions: play.decisions,
    outcomes: play.performers.map(({ outcome }) => outcome ?? { kind: 'unfinished' }),
    deadlocks: play.deadlocks,
    failure: play.failure,
    ...(play.uncontrolled !== undefined && { uncontrolled: play.uncontrolled }),
    ...(play.trouble && { trouble: play.trouble }),
    notes: [...play.notes.values()],
    frozen: play.frozen,
    leaving: play.leaving,
    performances: play.performers.map(({ performance: end }) => end),
    spent: play.performers.flatMap(({ outcome }, flow) =>
      outcome === undefined || (outcome.kind === 'crashed' && only.includes(flow)) ? [flow] : [],
    ),
  }
}

/** Lets the next of those that have not begun begin; false if all have. */
function beginNext(play: Play): boolean {
  const flow = play.waiting.shift()
  const performer = play.performers[flow ?? -1]
  if (flow === undefined || !performer) return false
  performer.seen = performance.now()
  performer.performance = perform(play, flow)
  return true
}

/** One decision, if there is one to make; false when the flows are done. */
async function advance(play: Play, decide: Decide): Promise<boolean> {
  await rest(play)
  if (play.trouble) return false
  const circle = findCircle(play.lanes)
  if (circle) {
    await endCircle(play, decide, circle)
    return true
  }
  play.circleSince = undefined
  const lanes = enabledLanes(play)
  if (lanes.length === 0) {
    if (play.performers.every(({ outcome }) => outcome !== undefined)) return false
    // One after the other: the next one begins when nothing is left of the one before.
    if (play.performers.every(({ performance: begun, outcome }) => !begun || outcome)) {
      return beginNext(play)
    }
    await waitForAnything(play)
    return true
  }
  if (play.steps.length >= play.setting.steps) {
    play.trouble = {
      kind: 'step-limit',
      message:
        `The flows were not done after ${play.setting.steps} steps. ` +
        'Raise the limit, or look for a loop.',
    }
    return false
  }
  const chosen = ask(play, decide, lanes, 'go')
  if (chosen) await apply(play, chosen.lane, chosen.choice)
  return true
}
