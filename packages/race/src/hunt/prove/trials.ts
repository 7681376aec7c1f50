/** From which rows, and with which values, two calls are run at once: each of them has to be accepted alone. */
import type { KnownTable } from '../../core/model.ts'
import type { Tried } from './attempt.ts'
import { type Edge, type Ground, mostVariations } from '../edges/edges.ts'
import type { Meeting } from '../propose/conflicts.ts'
import { alignments } from './alignments.ts'
import { fieldsOf } from '../edges/fields.ts'
import { withLoginOf } from './logins.ts'
import type { Call, Input, Trial } from '../model.ts'
import { type Profile, shapeText } from '../propose/profile.ts'
import type { Variation } from '../edges/vary.ts'

/** Trials of the first two calls that go these ways through the code; of others with other values. */
const mostOfFirst = 6
const mostOfOthers = 2
/** Trials of one pair of names, once each two ways have had one. */
const most = 12
/** Which other values of one place are tried until one is accepted: the last of them no search for an edge has used. */
const others = [1, 2, 3, 4, 31]

/** What is known of a call beside its recording. */
export interface Known {
  readonly edges: readonly Edge[]
  readonly variations: readonly Variation[]
  /** Rows of the tables before it. */
  readonly tables: readonly KnownTable[]
  /** False if the time was over before all of its edges were looked for. */
  readonly whole: boolean
  /** How the search for a refusal ended, if it has met none. */
  readonly gaveUp: string | undefined
}

export interface RunTrial extends Trial {
  readonly calls: readonly [Call, Call]
}

/** A trial, and the ways through the code that it stands for. */
export interface WayTrial extends RunTrial {
  readonly ways: ReadonlySet<string>
}

/** One that is not run, because one of its calls is not accepted alone. */
export interface Unfit {
  readonly trial: RunTrial
  /** Which of the two. */
  readonly at: 0 | 1
  readonly tried: Tried
}

/** Trials that stand for each other: of them the first one is run whose calls are both accepted. */
type Idea = readonly RunTrial[]

export interface Trials {
  readonly trials: readonly WayTrial[]
  readonly unfit: readonly Unfit[]
  /** Two ways through the code, both of which were accepted in the recording, without a trial. */
  readonly left: readonly (readonly [Profile, Profile])[]
}

/**
 * The likely ones first. Each two ways through the code have one before any of them has a second: what is safe in one
 * way may race in another.
 */
export async function trialsOf(
  candidates: readonly (readonly [Profile, Profile, Meeting])[],
  known: (profile: Profile) => Known,
  ground: Ground,
): Promise<Trials> {
  const trials: (RunTrial & { readonly ways: Set<string> })[] = []
  const unfit: Unfit[] = []
  const seen = new Map<string, { readonly ways: Set<string> } | undefined>()
  const ways = new Set<string>()
  const queues = candidates.map(([one, other, { by }]) => {
    const way = wayOf(one, other)
    const most = ways.has(way) ? mostOfOthers : mostOfFirst
    ways.add(way)
    const ideas = one === other ? ofOne(one, known(one)) : ofTwo(one, other, { known, by })
    return { way, ideas, most }
  })

  /** Whether one of them is run. */
  async function isRun(idea: Idea, way: string): Promise<boolean> {
    for (const trial of idea.flatMap((one) => [one, ...withLoginOf(one)])) {
      const text = JSON.stringify([trial.inputs, digestOf(trial)])
      if (seen.has(text)) {
        const same = seen.get(text)
        same?.ways.add(way)
        if (same) return false
        continue
      }
      if (ground.isOver()) return false
      const found = await unfitOf(trial, ground)
      if (found === undefined) {
        const run = { ...trial, ways: new Set([way]) }
        seen.set(text, run)
        trials.push(run)
        return true
      }
      seen.set(text, undefined)
      unfit.push(found)
    }
    return false
  }

  for (let round = 0; round < mostOfFirst && !ground.isOver(); round += 1) {
    if (round > 0 && trials.length >= most) break
    for (const queue of queues) {
      if (round > 0 && trials.length >= most) break
      if (round >= queue.most) continue
      let idea = queue.ideas.shift()
      while (idea && !(await isRun(idea, queue.way))) idea = queue.ideas.shift()
    }
  }
  const run = new Set(trials.flatMap(({ ways }) => [...ways]))
  const left = candidates.flatMap(([one, other]): [Profile, Profile][] => {
    const isAccepted = one.call.said === 'accepted' && other.call.said === 'accepted'
    return isAccepted && !run.has(wayOf(one, other)) ? [[one, other]] : []
  })
  return { trials, unfit, left }
}

function wayOf(one: Profile, other: Profile): string {
  return JSON.stringify([shapeText(one), shapeText(other)])
}

function digestOf({ state }: Trial): string {
  return state.tables.map(({ digest }) => digest).join()
}

async function unfitOf(trial: RunTrial, ground: Ground): Promise<Unfit | undefined> {
  for (const at of [0, 1] as const) {
    await ground.putBack(trial.state)
    const tried = await ground.attempt(trial.calls[at].send, trial.inputs[at])
    if (tried.said !== 'accepted') return { trial, at, tried }
  }
  return undefined
}

/** The same call twice: at its edges, as recorded, and with one value of its own at each of them. */
function ofOne({ call }: Profile, { edges, variations }: Known): Idea[] {
  const calls = [call, call] as const
  const { before: state, input } = call
  const recorded = {
    calls,
    state,
    inputs: [input, input],
    from: 'the rows of the recording',
  } as const
  const [edge, ...more] = edges.map((one): RunTrial => ({ ...one, calls }))
  const first = edge ?? recorded
  return [
    [first],
    ...(edge ? [[recorded]] : []),
    ...variedOf(first, variations),
    ...more.map((one) => [one]),
    ...(edge ? variedOf(recorded, variations) : []),
  ]
}

/**
 * With another value in one place of the second call: a lock by one value, such as the user, keeps nobody out who has
 * another one and is about the same limit.
 */
function variedOf(start: RunTrial, variations: readonly Variation[]): Idea[] {
  const [first, second] = start.inputs
  return variations.slice(0, mostVariations).map(({ path, value }) => {
    const field = fieldsOf(second).find((one) => one.path === path)
    const inputs = others.flatMap((n): Input[] => {
      const next = value(n)
      return field === undefined || next === undefined || next === field.value
        ? []
        : [field.with(next)]
    })
    return inputs.map((next) => ({
      ...start,
      inputs: [first, next] as const,
      from: `${start.from}, with another ${path}`,
    }))
  })
}

interface Beside {
  readonly known: (profile: Profile) => Known
  readonly by: Meeting['by']
}

/** Each from the rows of the other, at edges and as recorded; with the values that make them meet. */
function ofTwo(one: Profile, other: Profile, beside: Beside): Idea[] {
  const some = besideOf(one, other, beside)
  const turnedRound = besideOf(other, one, beside)
  return [
    ...some.same,
    ...turnedRound.same.map((idea) => idea.map(turned)),
    ...some.varied,
    ...turnedRound.varied.map((idea) => idea.map(turned)),
  ]
}

function turned(trial: RunTrial): RunTrial {
  const [first, second] = trial.inputs
  const [one, other] = trial.calls
  return { ...trial, inputs: [second, first], calls: [other, one] }
}

function besideOf(
  one: Profile,
  other: Profile,
  { known, by }: Beside,
): { readonly same: Idea[]; readonly varied: Idea[] } {
  const calls = [one.call, other.call] as const
  const { tables } = known(one)
  const starts = [
    ...known(one).edges.map(({ state, inputs: [input], from }) => ({ state, input, from })),
    { state: one.call.before, input: one.call.input, from: 'the rows of the recording' },
  ]
  // With the values of the recording they are about different rows if they meet by tables only.
  const seconds = [...alignments(other, one, tables), ...(by === 'rows' ? [other.call.input] : [])]
  const trials = starts.flatMap(({ state, input, from }) =>
    seconds.map((second): RunTrial => ({ calls, state, inputs: [input, second], from })),
  )
  return {
    same: trials.map((trial) => [trial]),
    varied: trials.slice(0, 1).flatMap((trial) => variedOf(trial, known(other).variations)),
  }
}
