/** From recorded calls to verdicts: each alone, which can meet, where their limits are, and every pair at once. */
import { haveActed, otherSessions } from '../run/connection/other-sessions.ts'
import { readKnownTables } from '../run/catalogue/known-tables.ts'
import { nameRows } from '../run/state/named-rows.ts'
import type { Saved } from '../run/state/snapshot.ts'
import { readServer } from '../run/catalogue/server-facts.ts'
import { list } from '../report/words.ts'
import { loadParser } from '../run/statement/statement-tree.ts'
import { assumedNotes, assumedOf, atomicNotes, learnedNotes } from './edges/assumptions.ts'
import { createAttempt, sayOf } from './prove/attempt.ts'
import { disguise } from './tests/disguise.ts'
import type { Outside } from './record/elsewhere.ts'
import { type EdgeGround, edgesOf } from './edges/edges.ts'
import type { Engine, Functions, Recording } from './engine.ts'
import { fieldsOf } from './edges/fields.ts'
import { shownHeard } from './record/http-input.ts'
import {
  type Call,
  type HuntedCall,
  type HuntedPair,
  type HuntProgress,
  type HuntReport,
  timeOver,
} from './model.ts'
import { type Profile, profileOf, type Unusable } from './propose/profile.ts'
import { propose, type Proposal, representatives } from './propose/propose.ts'
import { prove, type Proving } from './prove/prove.ts'
import { byParser, type Reading } from './propose/read-footprints.ts'
import type { Refusals } from './edges/refusals.ts'
import { seedOf, type States } from './states.ts'
import { type Known, trialsOf } from './prove/trials.ts'
import { goesOn, otherClient, watchAfterAnswers } from './prove/unseen.ts'
import { variationsOf } from './edges/vary.ts'
import { whyNowhere } from './prove/why-nowhere.ts'

/** Why no order that was run refutes anything. */
const limitsUnknown = 'the time was over before its limits were found'

/** Names of calls before which there were other tables, or columns, than after them: what they did then is not done again. */
function namesThatRemade(calls: readonly Call[], after: Saved): ReadonlySet<string> {
  const tablesOf = ({ tables }: Saved): string =>
    tables.map(({ quoted, columns }) => `${quoted} ${columns.join()}`).join()
  const changed = calls.filter(
    ({ before }, at) => tablesOf(before) !== tablesOf(calls[at + 1]?.before ?? after),
  )
  return new Set(changed.map(({ name }) => name))
}

const nothingKnown: Known = {
  edges: [],
  variations: [],
  tables: [],
  whole: false,
  gaveUp: undefined,
}

/** What a hunt consists of; a control of the tests hands in a lesser one. */
export interface HuntParts {
  readonly engine: Engine
  readonly reading: Reading
  readonly edges: typeof edgesOf
}

/** All of it. */
export function wholeHunt(engine: Engine): HuntParts {
  return { engine, reading: byParser, edges: edgesOf }
}

export interface HuntSetting {
  readonly url: string
  readonly refusals: Refusals
  readonly functions: Functions
  /** For all of it, and for one exploration. */
  readonly budget: { readonly ms: number; readonly pairMs: number }
  readonly progress: (progress: HuntProgress) => void
  /** When it began, by `performance.now()`. */
  readonly began: number
  /** Why a pair is not to be looked at. */
  readonly skip?: ((name: string, profiles: readonly Profile[]) => string | undefined) | undefined
  /** What is asked of other machines, if nothing is sent to them. */
  readonly outside?: Outside | undefined
}

export async function huntCalls(
  recorded: readonly Call[],
  states: States,
  setting: HuntSetting,
  { engine, reading, edges }: HuntParts,
): Promise<HuntReport> {
  await loadParser()
  const { url, refusals, functions, budget, began } = setting
  const outcome = refusals.classify
  const calls = recorded.map(refusals.held)
  const left = (): number => budget.ms - (performance.now() - began)
  let proven = 0
  /** What calls did without, and ended as they had in the recording. */
  const missed = new Set<string>()
  /** Pairs that are refuted only if functions are as one statement. */
  const asOne: string[] = []
  const tell = (phase: HuntProgress['phase'], done: number, of: number): void =>
    setting.progress({ phase, done, of, proven })

  const remade = namesThatRemade(calls, await states.take())
  const profiles: Profile[] = []
  const afterAnswers = watchAfterAnswers()
  const unusable: Unusable[] = []
  for (const [at, call] of calls.entries()) {
    tell('look', at, calls.length)
    const recording = await recordAlone(call)
    if (typeof recording === 'string') {
      unusable.push({ call, steps: [], because: recording })
      continue
    }
    const { refused = [] } = setting.outside?.take() ?? {}
    const found = profileOf(call, recording, { ...reading, refused })
    if ('because' in found) unusable.push(found)
    else profiles.push(found)
  }
  const goOn = await afterAnswers.names()
  const { proposals, apart } = propose(representatives(profiles, calls))

  const ground: Omit<EdgeGround, 'gaveUp'> = {
    take: states.take,
    putBack: states.putBack,
    attempt: createAttempt(sayOf(outcome)),
    // Looking for edges is not to take the time that proving needs.
    isOver: () => left() < budget.ms / 4,
    refusals,
  }
  const known = new Map<Profile, Known>()
  const proving: Proving = {
    engine,
    url,
    outcome,
    functions,
    timeFor: () => Math.min(budget.pairMs, left()),
    timeForPair: 4 * budget.pairMs,
    refusals,
    rest: states.rest,
  }
  const pairs: HuntedPair[] = []
  for (const [at, proposal] of proposals.entries()) {
    tell('prove', at, proposals.length)
    const pair = await huntPair(proposal)
    if (pair.verdict === 'proven') proven += 1
    pairs.push(pair)
  }
  tell('prove', proposals.length, proposals.length)
  return {
    calls: [...profiles, ...unusable].map(toldOf).sort((one, other) => one.number - other.number),
    pairs,
    apart,
    functions,
    notes: [
      ...learnedNotes(refusals),
      ...assumedNotes(known),
      ...atomicNotes(asOne),
      ...[...goOn].map((name) => `${name} ${goesOn}`),
      ...[...missed].map((what) => `${what} was refused to calls that were replayed`),
      ...(setting.outside?.background ?? [])
        .filter((what) => !missed.has(what))
        .map((what) => `${what} was refused, which no call has asked for`),
    ],
    server: (await readServer(states.control)).version,
    milliseconds: Math.round(performance.now() - began),
  }

  async function recordAlone(call: Call): Promise<Recording | string> {
    if (left() < budget.ms / 2) return timeOver
    setting.outside?.take()
    try {
      await states.rest()
      return await engine.record({
        url,
        name: call.name,
        seed: seedOf(call.before),
        flow: () => afterAnswers.send(call),
        oracle: false,
        outcome,
      })
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  async function knownOf({ call, bound }: Profile): Promise<Known> {
    if (ground.isOver()) return nothingKnown
    await states.putBack(call.before)
    const tables = await readKnownTables(states.control)
    const variations = variationsOf(fieldsOf(call.input), bound, tables)
    let end: string | undefined
    const gaveUp = (how: string): void => {
      end ??= how
    }
    const found =
      call.said === 'accepted' ? await edges(call, variations, { ...ground, gaveUp }) : []
    const isMet = call.said !== 'accepted' || found.some(({ isLimit }) => isLimit)
    return {
      variations,
      tables,
      edges: found,
      whole: !ground.isOver(),
      gaveUp: isMet ? undefined : (end ?? 'no call was refused'),
    }
  }

  async function huntPair({ calls: names, candidates, reasons }: Proposal): Promise<HuntedPair> {
    const [one, other] = names
    const name = `${one} × ${one === other ? 'itself' : other}`
    const [first] = candidates
    const numbers = [first?.[0].call.number ?? 0, first?.[1].call.number ?? 0] as const
    const base = { name, calls: names, numbers, reasons, from: [] }
    const profilesOf = new Set(candidates.flatMap(([a, b]) => [a, b]))
    const skipped = setting.skip?.(name, [...profilesOf])
    const because = left() <= 0 ? timeOver : skipped
    if (because !== undefined) return { ...base, verdict: 'not looked at', because, runs: 0 }
    for (const profile of profilesOf) {
      if (!known.has(profile)) known.set(profile, await knownOf(profile))
    }
    const {
      trials,
      unfit,
      left: ways,
    } = await trialsOf(candidates, (profile) => known.get(profile) ?? nothingKnown, {
      ...ground,
      isOver: () => left() <= 0,
    })
    if (trials.length === 0) {
      const why = whyNowhere(unfit, [...profilesOf])
      return { ...base, verdict: 'undecided', because: left() <= 0 ? timeOver : why, runs: 0 }
    }
    setting.outside?.take()
    const others = await otherSessions(states.control)
    const { proven: found, ...proof } = await prove(name, trials, proving, profilesOf)
    const beside = proof.verdict !== 'proven' && (await haveActed(states.control, others))
    const whole = [...profilesOf].every((profile) => known.get(profile)?.whole)
    if (proof.verdict === 'refuted' && !whole)
      return { ...unproven(base, proof), because: limitsUnknown }
    if (proof.verdict === 'refuted' && ways.length > 0) {
      const because = `in one of the ways that they go through the code, ${whyNowhere(unfit, ways.flat())}`
      return { ...unproven(base, proof), because }
    }
    const late = names.find((each) => goOn.has(each))
    if (proof.verdict === 'refuted' && late !== undefined)
      return { ...unproven(base, proof), because: `${late} ${goesOn}` }
    if (beside) {
      // What else was in the way stands beside it: it may come of the same.
      const why = proof.verdict === 'undecided' ? proof.because : undefined
      const because = why === undefined ? otherClient : `${otherClient}; ${why}`
      return { ...unproven(base, proof), because }
    }
    const maker = names.find((each) => remade.has(each))
    if (proof.verdict === 'refuted' && maker !== undefined) {
      const because = `the tables were others before ${maker} than after it, and rows alone are put back`
      return { ...unproven(base, proof), because }
    }
    const { answered = [], escaped = [], refused = [] } = setting.outside?.take() ?? {}
    for (const what of refused) missed.add(what)
    if (escaped.length > 0) {
      const because = `they use ${list(escaped)}, which nothing keeps from reaching other machines`
      return { ...unproven(base, proof), because }
    }
    if (found === undefined) {
      if (proof.verdict !== 'refuted') return { ...base, ...proof }
      if (proof.assumed !== undefined) asOne.push(name)
      const all = [assumedOf([...profilesOf], known, calls), proof.assumed]
      const assumed = all.filter((text) => text !== undefined).join('; ')
      return { ...base, ...proof, ...(assumed !== '' && { assumed }) }
    }
    const rows = await nameRows(states.control.client, found.state)
    const { inputs = [], sentence = '' } = proof
    const material = { rows, heard: answered.map(shownHeard), inputs, sentence }
    const rules = Object.fromEntries(names.map((each) => [each, refusals.textsOf(each)]))
    const again = { ...disguise(material, found.sent), refused: rules, functions }
    return { ...base, ...proof, again }
  }
}

function unproven<B extends object>(
  base: B,
  { from, runs }: { readonly from: readonly string[]; readonly runs: number },
) {
  return { ...base, from, runs, verdict: 'undecided' } as const
}

function toldOf(found: Profile | Unusable): HuntedCall {
  const { number, name, said } = found.call
  const because = 'because' in found ? found.because : undefined
  return {
    number,
    name,
    said,
    statements: found.steps.length,
    ...(because !== undefined && { unusable: because }),
  }
}
