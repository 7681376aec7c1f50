/** In a process of its own: loads the application, and hunts in the calls that were recorded of it. */
import { sayOf } from '../hunt/prove/attempt.ts'
import type { Engine } from '../hunt/engine.ts'
import { huntCalls, type HuntSetting, wholeHunt } from '../hunt/hunt-calls.ts'
import type { Call, HuntProgress, HuntReport } from '../hunt/model.ts'
import { createRefusals, refusalRule, type Refusals } from '../hunt/edges/refusals.ts'
import { openStates } from '../hunt/states.ts'
import { type OpenApplication, openApplication, type Opening } from './open-application.ts'
import type { Recording } from './recording.ts'

/** What is to be proven. Plain data. */
export interface ProvingTask extends Omit<Opening, 'heard'> {
  readonly recording: Recording
  readonly budget: HuntSetting['budget']
  /** Answers that are refusals, as `--refused` tells them. */
  readonly refused?: readonly string[] | undefined
  readonly functions: HuntSetting['functions']
  /** Only pairs whose name has this in it. */
  readonly only?: string | undefined
  /** Only pairs with a statement of one of these files, which have changed since this commit. */
  readonly since?: { readonly ref: string; readonly files: ReadonlySet<string> } | undefined
}

export async function proveRecording(
  task: ProvingTask,
  engine: Engine,
  progress: (progress: HuntProgress) => void,
): Promise<HuntReport> {
  const began = performance.now()
  const { recording, url, budget, functions } = task
  await using application = await openApplication({ ...task, heard: recording.heard })
  await using states = await openStates(url)
  const refusals = createRefusals(application.outcome, task.refused?.map(refusalRule))
  const { calls, notes } = callsOf(recording, application, refusals)
  const { outside } = application
  const setting: HuntSetting = {
    url,
    refusals,
    functions,
    budget,
    progress,
    began,
    skip: skipOf(task),
    outside,
  }
  const report = await states.orStopped(huntCalls(calls, states, setting, wholeHunt(engine)))
  return {
    ...report,
    notes: [...recording.notes, ...mockNotes(recording), ...notes, ...report.notes],
  }
}

function mockNotes({ isWithoutDatabase }: Recording): readonly string[] {
  if (isWithoutDatabase !== true) return []
  return [
    'the suite connected to no database in the recording, so it may have a mock in its place: its calls were made again with the rows of the database of the hunt, which the suite has not prepared. Give the command tests that use the database',
  ]
}

function callsOf(
  { calls }: Recording,
  { sendOf }: OpenApplication,
  { classify }: Refusals,
): { readonly calls: readonly Call[]; readonly notes: readonly string[] } {
  const say = sayOf(classify)
  const missing = new Set<string>()
  const usable = calls.flatMap((call): Call[] => {
    const { name, input, answer, said } = call
    const send = sendOf(name, input.kind)
    if (send === undefined) {
      missing.add(name)
      return []
    }
    // Of what a function threw, and of what cannot be sent from there to here, there is only what it said.
    const isKnown = input.kind === 'http' || answer !== undefined
    return [{ ...call, send, said: isKnown ? say({ answer }) : said }]
  })
  return {
    calls: usable,
    notes: [...missing].map(
      (name) => `${name} is in no pair: the file that --app names has nothing that answers it`,
    ),
  }
}

function skipOf({ only, since }: ProvingTask): HuntSetting['skip'] {
  return (name, profiles) => {
    if (only !== undefined && !name.includes(only)) return `left out by --only ${only}`
    if (since === undefined) return undefined
    const files = profiles.flatMap(({ steps }) => steps.map(({ from }) => from?.file))
    if (files.some((file) => file !== undefined && since.files.has(file))) return undefined
    return `left out by --since ${since.ref}: no file that its statements come from has changed`
  }
}
