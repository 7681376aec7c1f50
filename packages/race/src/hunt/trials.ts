/** From which rows, and with which values, two calls are run at once: each of them has to be accepted alone. */
import type { Tried } from './attempt.ts'
import type { Edge, Ground } from './edges.ts'
import type { Meeting } from './conflicts.ts'
import { fieldsOf, withEvery } from './fields.ts'
import { withLoginOf } from './logins.ts'
import type { Call, Input, Trial } from './model.ts'
import type { Profile } from './profile.ts'
import type { Variation } from './vary.ts'

/** Trials of one pair of names. */
const most = 4

/** What is known of a call beside its recording. */
export interface Known {
  readonly edges: readonly Edge[]
  readonly variations: readonly Variation[]
  /** False if the time was over before all of its edges were looked for. */
  readonly whole: boolean
  /** How the search for a refusal ended, if it has met none. */
  readonly gaveUp: string | undefined
}

export interface RunTrial extends Trial {
  readonly calls: readonly [Call, Call]
}

/** One that is not run, because one of its calls is not accepted alone. */
export interface Unfit {
  readonly trial: RunTrial
  /** Which of the two. */
  readonly at: 0 | 1
  readonly tried: Tried
}

/** The likely ones first; none if there is no such place. */
export async function trialsOf(
  candidates: readonly (readonly [Profile, Profile, Meeting])[],
  known: (profile: Profile) => Known,
  ground: Ground,
): Promise<{ readonly trials: readonly RunTrial[]; readonly unfit: readonly Unfit[] }> {
  const trials: RunTrial[] = []
  const unfit: Unfit[] = []
  const seen = new Set<string>()
  for (const [one, other, { by }] of candidates) {
    const ideas = one === other ? ofOne(one, known(one)) : ofTwo(one, other, { known, by })
    for (const idea of ideas) {
      for (const trial of [idea, ...withLoginOf(idea)]) {
        const text = JSON.stringify([trial.inputs, digestOf(trial)])
        if (seen.has(text)) continue
        seen.add(text)
        if (ground.isOver() || trials.length >= most) return { trials, unfit }
        const found = await unfitOf(trial, ground)
        if (found === undefined) {
          trials.push(trial)
          break
        }
        unfit.push(found)
      }
    }
  }
  return { trials, unfit }
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

/** The same call twice: at its edges, as recorded, and with one value of its own. */
function ofOne({ call }: Profile, { edges, variations }: Known): RunTrial[] {
  const calls = [call, call] as const
  const { before: state, input } = call
  const varied = variations.slice(0, 2).flatMap((variation): RunTrial[] => {
    const next = variation.input(1)
    const from = `the rows of the recording, with another ${variation.path}`
    return next ? [{ calls, state, inputs: [input, next], from }] : []
  })
  return [
    ...edges.map((edge) => ({ ...edge, calls })),
    { calls, state, inputs: [input, input], from: 'the rows of the recording' },
    ...varied,
  ]
}

interface Beside {
  readonly known: (profile: Profile) => Known
  readonly by: Meeting['by']
}

/** Each from the rows of the other, at edges and as recorded; with the values that make them meet. */
function ofTwo(one: Profile, other: Profile, beside: Beside): RunTrial[] {
  return [...besideOf(one, other, beside), ...besideOf(other, one, beside).map(turned)]
}

function turned(trial: RunTrial): RunTrial {
  const [first, second] = trial.inputs
  const [one, other] = trial.calls
  return { ...trial, inputs: [second, first], calls: [other, one] }
}

function besideOf(one: Profile, other: Profile, { known, by }: Beside): RunTrial[] {
  const calls = [one.call, other.call] as const
  const starts = [
    ...known(one).edges.map(({ state, inputs: [input], from }) => ({ state, input, from })),
    { state: one.call.before, input: one.call.input, from: 'the rows of the recording' },
  ]
  // With the values of the recording they are about different rows if they meet by tables only.
  const seconds = [...alignments(other, one), ...(by === 'rows' ? [other.call.input] : [])]
  return starts.flatMap(({ state, input, from }) =>
    seconds.map((second): RunTrial => ({ calls, state, inputs: [input, second], from })),
  )
}

/** Inputs of the one that are about the same rows as the model: by the columns that both bind, and by names of fields. */
function alignments(one: Profile, model: Profile): readonly Input[] {
  return [byColumns(one, model), byNames(one.call.input, model.call.input)].filter(
    (input) => input !== undefined,
  )
}

function byColumns(one: Profile, model: Profile): Input | undefined {
  let input: Input | undefined
  for (const { table, column, value } of one.bound) {
    const same = model.bound.filter((their) => their.table === table && their.column === column)
    const [their] = same
    if (their === undefined || same.some((another) => another.value === value)) continue
    input = withEvery(input ?? one.call.input, value, their.value)
  }
  return input
}

function byNames(input: Input, model: Input): Input | undefined {
  let aligned: Input | undefined
  for (const { path, value } of fieldsOf(model)) {
    const same = fieldsOf(aligned ?? input).find((field) => field.path === path)
    if (
      same &&
      typeof same.value === typeof value &&
      same.value !== value &&
      !path.startsWith('path')
    ) {
      aligned = same.with(value)
    }
  }
  return aligned
}
