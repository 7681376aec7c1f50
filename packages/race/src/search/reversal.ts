/**
 * What else could have happened. Two steps *race* if nothing but their own dependency orders them; then
 * there is a class in which the later one comes first. A run that begins with everything that does not
 * follow the earlier step, and then makes the later one, is of such a class.
 *
 * A set of runs in which the reversal of every race of every run is the beginning of some run of the set
 * contains every class: take any class and the run of the set that agrees with it longest; the first
 * step on which they part races, in that run, with something that the class has later or not at all,
 * and the reversal agrees longer.
 */
import type { Dependent } from '../core/footprint.ts'
import type { Choice } from '../core/model.ts'
import { effectsMeet, type Event, type Nodes, sameLane, type Trace } from './trace.ts'

/** A beginning of a run: events of a known one, the last of them earlier than it was there. */
export interface Beginning {
  readonly trace: Trace
  /** Indexes into the trace, in their order, without the last. */
  readonly events: readonly number[]
  readonly last: Event
  /** What comes directly before the last one, now that it is earlier. */
  readonly lastDirect: readonly number[]
}

function bit(set: bigint, index: number): boolean {
  return ((set >> BigInt(index)) & 1n) === 1n
}

/** Every reversal of a race of the run. */
export function reversals(trace: Trace, dependent: Dependent): Beginning[] {
  const found: Beginning[] = []
  for (const later of trace.events) {
    for (const index of later.direct) {
      const earlier = trace.events[index] as Event
      if (!isRace(earlier, later)) continue
      found.push(reversal(trace, earlier, later, later.effects, dependent))
      // One that waited and then ended its transaction may not have to wait where it comes now.
      if (later.resumedBy !== undefined && later.step.footprint.ends !== undefined) {
        const atOnce = [{ footprint: later.step.footprint, of: later.index }]
        found.push(reversal(trace, earlier, later, atOnce, dependent))
      }
    }
  }
  return found
}

/** A step does not race with the one that made it possible, nor with its own connection. */
function isRace(earlier: Event, later: Event): boolean {
  if (later.enabledBy === earlier.index) return false
  if (later.step.choice.action === 'victim') return false
  return earlier.step.flow !== later.step.flow || earlier.step.lane !== later.step.lane
}

function reversal(
  trace: Trace,
  earlier: Event,
  later: Event,
  effects: Event['effects'],
  dependent: Dependent,
): Beginning {
  const kept = trace.events.filter(
    ({ index, past }) => index !== earlier.index && !bit(past, earlier.index),
  )
  const present = new Set(kept.map(({ index }) => index))
  present.add(later.index)
  const direct: number[] = []
  let past = 0n
  for (const event of kept.toReversed()) {
    if (bit(past, event.index)) continue
    if (
      event.step.flow === later.step.flow ||
      event.index === later.enabledBy ||
      effectsMeet(dependent, event.effects, effects, (of) => present.has(of))
    ) {
      direct.push(event.index)
      past |= event.past | (1n << BigInt(event.index))
    }
  }
  return { trace, events: kept.map(({ index }) => index), last: later, lastDirect: direct }
}

/** A deadlock's other ends: the steps up to it, and another flow that dies of it. */
export function otherVictims(
  trace: Trace,
  nodes: Nodes,
): { readonly choices: readonly Choice[]; readonly nodes: readonly number[] }[] {
  return trace.events.flatMap(({ index, step }) => {
    if (step.choice.action !== 'victim') return []
    const before = trace.events.slice(0, index)
    const others = (trace.run.decisions[index]?.enabled ?? []).filter(
      ({ choice }) => choice.action === 'victim' && choice.flow !== step.flow,
    )
    return others.map(({ choice, fingerprint }) => {
      const ordinal = before.filter((event) => sameLane(event.step.choice, choice)).length
      const other = { step: { ...step, lane: choice.lane, choice }, ordinal, fingerprint }
      const closer = before.at(-1)
      const node = nodes.number(choice.flow, other, closer === undefined ? [] : [closer.node])
      return {
        choices: [...before.map((event) => event.step.choice), choice],
        nodes: [node, ...before.map((event) => event.node)],
      }
    })
  })
}

/**
 * The nodes of a beginning: what a run must contain to begin so. `rename` says which flow stands for
 * which, for flows that are alike.
 */
export function nodesOf(
  beginning: Beginning,
  nodes: Nodes,
  rename?: readonly number[],
): { readonly all: readonly number[]; readonly last: number } {
  const { trace, events, last, lastDirect } = beginning
  if (rename === undefined) {
    const known = (index: number): number => (trace.events[index] as Event).node
    const lastNode = nodes.number(last.step.flow, last, lastDirect.map(known))
    return { all: events.map(known), last: lastNode }
  }
  const numbers = new Map<number, number>()
  const number = (event: Event, direct: readonly number[]): number =>
    nodes.number(
      rename[event.step.flow] ?? event.step.flow,
      event,
      direct.map((index) => numbers.get(index) as number),
    )
  for (const index of events) {
    const event = trace.events[index] as Event
    numbers.set(index, number(event, event.direct))
  }
  return { all: [...numbers.values()], last: number(last, lastDirect) }
}
