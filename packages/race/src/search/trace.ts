/**
 * A run as a partial order: which step had to come before which. Two runs with the same partial order
 * are of one class. Steps are known by what they are and by everything that had to come before them
 * (their *node*), so a step of one run is recognised in another exactly if its past is the same.
 */
import type { Dependent } from '../core/footprint.ts'
import type { Choice, Footprint, Run, Step } from '../core/model.ts'

/** A step and its place in the partial order. */
export interface Event {
  readonly index: number
  readonly step: Step
  readonly choice: Choice
  readonly fingerprint: string
  /** Place within its connection, from 0. */
  readonly ordinal: number
  /** The event after which it could be chosen; -1 if from the start. */
  readonly enabledBy: number
  /** The event after which its statement went on, if it waited longer than its own step. */
  readonly resumedBy: number | undefined
  /** Steps directly before it in the partial order. */
  readonly direct: readonly number[]
  /** Everything before it, as bits by index. */
  readonly past: bigint
  /** Equal for equal steps with equal pasts, across runs. */
  readonly node: number
}

export interface Trace {
  readonly run: Run
  readonly events: readonly Event[]
  readonly nodes: ReadonlySet<number>
}

/** What a step is, whatever came before it. `flow` is given apart, so that like flows can be compared. */
export function identityOf(
  flow: number,
  event: Pick<Event, 'ordinal' | 'fingerprint'> & { readonly choice: Choice },
): string {
  const { choice, ordinal, fingerprint } = event
  return `${flow}.${choice.lane}.${ordinal} ${choice.action} ${fingerprint}`
}

/** Gives equal steps with equal pasts equal numbers. */
export class Nodes {
  readonly #numbers = new Map<string, number>()

  number(identity: string, direct: readonly number[]): number {
    const key = `${identity} ${direct.toSorted((one, other) => one - other).join()}`
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const number = this.#numbers.size
    this.#numbers.set(key, number)
    return number
  }
}

export function sameLane(one: Choice, other: Choice): boolean {
  return one.flow === other.flow && one.lane === other.lane
}

/** What the chosen step was called when it waited at the gate. */
export function fingerprintOf(run: Run, index: number): string {
  const step = run.steps[index] as Step
  const pending = run.decisions[index]?.enabled.find(({ choice }) => sameLane(choice, step.choice))
  return pending?.fingerprint ?? step.statements.join(';')
}

/** The step after which the chosen one stood at the gate; -1 if it did from the start. */
function enabler(run: Run, index: number, fingerprint: string): number {
  const { choice } = run.steps[index] as Step
  let first = index
  while (
    first > 0 &&
    !sameLane((run.steps[first - 1] as Step).choice, choice) &&
    run.decisions[first - 1]?.enabled.some(
      (pending) => sameLane(pending.choice, choice) && pending.fingerprint === fingerprint,
    )
  )
    first--
  return first - 1
}

/** A statement that waits has taken its snapshot and its place in the queue, and ended nothing yet. */
function issued(footprint: Footprint): Footprint {
  return { opaque: footprint.opaque, touches: footprint.touches, isolation: footprint.isolation }
}

function wokenLater(step: Step): boolean {
  return step.resumedAfter !== undefined && step.resumedAfter > step.index
}

/**
 * The footprints, with one doubt: the end of a transaction that locked or wrote something, and says
 * nothing about it, may have met anybody.
 */
function footprintsOf(run: Run): Footprint[] {
  const holding = new Set<string>()
  return run.steps.map(({ flow, lane, before, after, footprint }) => {
    const key = `${flow}.${lane}`
    const silent = before === 'T' && after === 'I' && footprint.ends === undefined
    if (silent && holding.delete(key)) return { ...footprint, opaque: true }
    if (footprint.ends !== undefined || after === 'I') holding.delete(key)
    else if (footprint.touches.some(({ mode }) => mode !== 'read')) holding.add(key)
    return footprint
  })
}

/**
 * What each step did at its place. A statement that waited does its work when it is woken, as part of
 * the step that woke it. The end of a deadlock's victim is part of the step that closed the circle,
 * since nothing can be chosen in between.
 */
function effectsOf(run: Run): Footprint[][] {
  const effects: Footprint[][] = run.steps.map(() => [])
  const footprints = footprintsOf(run)
  const at = (index: number): number => {
    let place = index
    while (place > 0 && run.steps[place]?.choice.action === 'victim') place--
    return place
  }
  for (const step of run.steps) {
    const footprint = footprints[step.index] as Footprint
    if (wokenLater(step)) {
      effects[step.index]?.push(issued(footprint))
      effects[at(step.resumedAfter as number)]?.push(footprint)
    } else effects[at(step.index)]?.push(footprint)
  }
  return effects
}

/** Pairs that are ordered whatever their footprints say, as `earlier later`. */
function forcedOrder(run: Run, meets: (one: number, other: number) => boolean): Set<string> {
  const forced = new Set<string>()
  for (const step of run.steps) {
    if (wokenLater(step)) forced.add(`${step.index} ${step.resumedAfter}`)
    // What a step waited for was in its way, even if no footprint shows by what.
    for (const flow of step.waitedFor) {
      const open = openSteps(run, flow, step.index)
      if (!open.some((index) => meets(index, step.index)))
        for (const index of open) forced.add(`${index} ${step.index}`)
    }
  }
  for (const closer of deadlockClosers(run)) {
    const waiting = run.steps.filter(
      ({ index, resumedAfter }) =>
        index <= closer && resumedAfter !== undefined && resumedAfter >= closer,
    )
    for (const one of waiting)
      for (const other of waiting)
        if (one.index < other.index) forced.add(`${one.index} ${other.index}`)
  }
  return forced
}

/** Steps of a flow since it last ended a transaction, before a place in the run. */
function openSteps(run: Run, flow: number, before: number): number[] {
  const steps = run.steps.filter((step) => step.flow === flow && step.index < before)
  const ended = steps.findLastIndex(({ footprint }) => footprint.ends !== undefined)
  return steps.slice(ended + 1).map(({ index }) => index)
}

/** Steps that closed a circle of waiting flows: who comes last may decide who dies. */
function deadlockClosers(run: Run): Set<number> {
  const closers = new Set<number>()
  for (const step of run.steps) {
    if (step.choice.action === 'victim') closers.add(step.index - 1)
    else if (step.answer.error?.sqlstate === '40P01' && step.resumedAfter !== undefined) {
      const resumer = run.steps[step.resumedAfter]
      if (resumer?.choice.action !== 'victim') closers.add(step.resumedAfter)
    }
  }
  return closers
}

function meet(
  dependent: Dependent,
  one: readonly Footprint[],
  other: readonly Footprint[],
): boolean {
  return one.some((first) => other.some((second) => dependent(first, second)))
}

/** The partial order of a run. */
export function traceOf(run: Run, dependent: Dependent, nodes: Nodes): Trace {
  const effects = effectsOf(run)
  const forced = forcedOrder(run, (one, other) =>
    meet(dependent, effects[one] ?? [], effects[other] ?? []),
  )
  const ordinals = new Map<string, number>()
  const events: Event[] = []
  for (const step of run.steps) {
    const { index } = step
    const lane = `${step.flow}.${step.lane}`
    const ordinal = ordinals.get(lane) ?? 0
    ordinals.set(lane, ordinal + 1)
    const fingerprint = fingerprintOf(run, index)
    const enabledBy = enabler(run, index, fingerprint)
    const mine = effects[index] ?? []
    const direct: number[] = []
    let past = 0n
    // From the nearest back: what is reached through a nearer one is not direct.
    for (let earlier = index - 1; earlier >= 0; earlier--) {
      if ((past >> BigInt(earlier)) & 1n) continue
      const before = events[earlier] as Event
      if (
        before.step.flow === step.flow ||
        earlier === enabledBy ||
        forced.has(`${earlier} ${index}`) ||
        meet(dependent, effects[earlier] ?? [], mine)
      ) {
        direct.push(earlier)
        past |= before.past | (1n << BigInt(earlier))
      }
    }
    events.push({
      index,
      step,
      choice: step.choice,
      fingerprint,
      ordinal,
      enabledBy,
      resumedBy: wokenLater(step) ? step.resumedAfter : undefined,
      direct,
      past,
      node: nodes.number(
        identityOf(step.flow, { choice: step.choice, ordinal, fingerprint }),
        direct.map((earlier) => (events[earlier] as Event).node),
      ),
    })
  }
  return { run, events, nodes: new Set(events.map(({ node }) => node)) }
}
