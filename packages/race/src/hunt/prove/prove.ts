/** One pair after the other under the explorer, and what its report means here. */
import { orAsOne } from '../../core/as-one.ts'
import type { Note, Place, Report } from '../../core/model.ts'
import { uncertain } from '../../report/coverage-words.ts'
import { differenceOf, faultOf } from '../../report/difference.ts'
import { explainRace } from '../../report/explain-race.ts'
import { patchOf } from '../../report/fix/patch.ts'
import type { Classify } from '../../run/answer/said.ts'
import { atomicNext } from '../edges/assumptions.ts'
import { writesAny } from '../propose/conflicts.ts'
import type { Engine, Functions } from '../engine.ts'
import { shownInput } from '../record/http-input.ts'
import { maskSecrets } from '../report/mask-secrets.ts'
import type { Saved } from '../../run/state/snapshot.ts'
import type { HuntedPair, Input } from '../model.ts'
import type { Profile } from '../propose/profile.ts'
import type { Refusals } from '../edges/refusals.ts'
import { seedOf } from '../states.ts'
import { supposedOf, supposedText } from './supposed.ts'
import type { RunTrial, WayTrial } from './trials.ts'

export interface Proving {
  readonly engine: Engine
  readonly url: string
  readonly outcome: Classify
  readonly functions: Functions
  readonly refusals: Pick<Refusals, 'isOpen' | 'suppose'>
  /** For one exploration, in milliseconds. */
  timeFor(): number
  /** For all explorations of one pair. */
  readonly timeForPair: number
  /** Waits until calls that were made alone are over. */
  rest(): Promise<void>
}

/** What is known of a pair once its trials are over. */
export type Proof = Pick<
  HuntedPair,
  | 'verdict'
  | 'sentence'
  | 'because'
  | 'assumed'
  | 'from'
  | 'inputs'
  | 'token'
  | 'places'
  | 'patch'
  | 'report'
  | 'runs'
> & {
  /** Of a race: the rows from which it was proven, and what was sent, with its secrets. */
  readonly proven?: { readonly state: Saved; readonly sent: readonly Input[] }
}

/** Proven by the first trial that shows a race; refuted only if every trial was run to its end. */
export async function prove(
  name: string,
  trials: readonly WayTrial[],
  proving: Proving,
  profiles: ReadonlySet<Profile> = new Set(),
): Promise<Proof> {
  let runs = 0
  const doubts: string[] = []
  const from: string[] = []
  const assumed = new Set<string>()
  const met = new Set<string>()
  const began = performance.now()
  for (const trial of trials) {
    const spent = performance.now() - began
    const ms = Math.min(proving.timeFor(), proving.timeForPair - spent)
    if (ms <= 0) {
      doubts.push('the time was over')
      break
    }
    await proving.rest()
    const report = await exploreTrial(name, trial, { schedules: 500, ms }, proving)
    runs += report.coverage.schedules
    const found = maskSecrets(proofOf(name, report, proving.functions), trial.inputs)
    const ifRefused = await noRaceIfRefused(name, report, trial, proving, profiles)
    if (found.verdict === 'proven' && ifRefused !== undefined) doubts.push(ifRefused)
    else if (found.verdict === 'proven') {
      const inputs = [shownInput(trial.inputs[0]), shownInput(trial.inputs[1])] as const
      const { state, inputs: sent } = trial
      return { ...found, from: [trial.from], inputs, runs, proven: { state, sent } }
    }
    if (found.because !== undefined) doubts.push(found.because)
    if (found.assumed !== undefined) assumed.add(found.assumed)
    from.push(trial.from)
    if (report.coverage.classes > 1) for (const way of trial.ways) met.add(way)
  }
  const apart = trials.flatMap(({ ways }) => [...ways]).filter((way) => !met.has(way))
  if (apart.length > 0) {
    const where = met.size === 0 ? '' : 'in one of the ways that they go through the code, '
    doubts.push(`${where}they were never about the same rows`)
  }
  const [because] = doubts
  if (because !== undefined) return { verdict: 'undecided', because, from, runs }
  return {
    verdict: 'refuted',
    from,
    runs,
    ...(assumed.size > 0 && { assumed: [...assumed].join('; ') }),
  }
}

/** Why a race is perhaps none: if what was answered in it says no, every order is as it should be. */
async function noRaceIfRefused(
  name: string,
  report: Report,
  trial: RunTrial,
  proving: Proving,
  profiles: ReadonlySet<Profile>,
): Promise<string | undefined> {
  const { refusals } = proving
  // What only reads has nothing to refuse: its answer is what it saw.
  const writes = [...profiles].filter(writesAny).map(({ call }) => call.name)
  const names = trial.calls.map((call) => (writes.includes(call.name) ? call.name : undefined))
  const supposed = report.verdict === 'race' ? supposedOf(report, names, refusals) : []
  if (supposed.length === 0) return undefined
  const explore = (): Promise<Report> =>
    exploreTrial(name, trial, { schedules: 500, ms: proving.timeFor() }, proving)
  const held = supposed.reduce<() => Promise<Report>>(
    (work, one) => () => refusals.suppose(one.name, one.rule, work),
    explore,
  )
  await proving.rest()
  return (await held()).verdict === 'race' ? undefined : supposedText(supposed)
}

/** Both at once, in every order that can differ. */
export function exploreTrial(
  name: string,
  { state, inputs, calls }: Pick<RunTrial, 'state' | 'inputs' | 'calls'>,
  budget: { readonly schedules: number; readonly ms: number },
  { engine, url, outcome, functions }: Pick<Proving, 'engine' | 'url' | 'outcome' | 'functions'>,
): Promise<Report> {
  const [one, other] = calls
  const second = other.name === one.name ? `${other.name} again` : other.name
  return engine.explore({
    name,
    url,
    seed: seedOf(state),
    flows: {
      [one.name]: () => one.send(inputs[0]),
      [second]: () => other.send(inputs[1] as Input),
    },
    outcome,
    functions,
    budget,
    onProgress: () => undefined,
  })
}

/** Only what was replayed with the same end, every time, is a proof; only what was run in every order a refutation. */
export function proofOf(
  name: string,
  report: Report,
  functions: Functions = 'open',
): Omit<Proof, 'from' | 'inputs'> {
  const runs = report.coverage.schedules
  const { failure, verdict, coverage, trouble, notes } = report
  if (verdict === 'race' && failure) {
    const [again, replays] = failure.reproduced
    if (replays === 0 || again < replays) {
      const because = `a race was seen, and came again in ${again} of ${replays} replays`
      return { verdict: 'undecided', because, runs }
    }
    const { title = 'a result that no serial order gives', fixes = [] } = explainRace(report) ?? {}
    const patch = patchOf(fixes)
    const fault = faultOf(failure, differenceOf(failure, report))
    return {
      verdict: 'proven',
      sentence: `${name}: ${title}; ${fault}`,
      token: failure.token,
      places: placesOf(report),
      ...(patch && { patch }),
      report,
      runs,
    }
  }
  if (verdict === 'race-free' && coverage.exhaustive) {
    const counted = notes.filter(({ kind }) => kind === 'counted-as-one')
    const assumed = counted.map(({ message }) => message).join('; ')
    return { verdict: 'refuted', runs, ...(assumed !== '' && { assumed }) }
  }
  if (verdict === 'vacuous') {
    return { verdict: 'undecided', because: 'the two were never under way together', runs }
  }
  const inside = functions === 'open' ? onlyInside(report) : undefined
  const [note] = notes
  const rest = inside ? `: ${inside.message} ${atomicNext}` : note ? `: ${note.message}` : ''
  const because =
    trouble?.message ?? `nothing was found in ${runs} runs, and not every order was run${rest}`
  return { verdict: 'undecided', because, runs }
}

/** The note of what others can act inside of, if nothing else keeps the report from covering every order. */
function onlyInside({ notes, coverage }: Report): Note | undefined {
  if (coverage.missBound !== undefined) return undefined
  const open = notes.filter(({ kind }) => uncertain.has(kind))
  return open.every(({ message }) => message.includes(orAsOne)) ? open[0] : undefined
}

function placesOf({ failure }: Report): readonly Place[] {
  const places = new Map<string, Place>()
  for (const { from } of failure?.run.steps ?? []) {
    if (from) places.set(`${from.file}:${from.line}`, from)
  }
  return [...places.values()]
}
