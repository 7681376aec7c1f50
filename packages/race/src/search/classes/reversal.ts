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
import type { Choice } from '../../core/model.ts'
import { type Event, identityOf, type Nodes, sameLane, type Trace } from '../trace.ts'

/** A beginning of a run: events of a known one, and one more that came later there. */
export interface Beginning {
  readonly trace: Trace
  /** Indexes into the trace, in their order, without the last. */
  readonly events: readonly number[]
  readonly last: Event
}

/** What a run must contain to begin so, and which step it must make then. */
export interface Wanted {
  readonly nodes: readonly number[]
  /** What the step will meet at its new place is not known, so only what it is. */
  readonly last: string
}

/** Every reversal of a race of the run. */
export function reversals(trace: Trace): Beginning[] {
  return trace.events.flatMap((later) =>
    later.direct
      .map((index) => trace.events[index] as Event)
      .filter((earlier) => isRace(earlier, later))
      .map((earlier) => ({ trace, events: notAfter(trace, earlier), last: later })),
  )
}

/** A step does not race with the one that made it possible, nor with its own connection. */
function isRace(earlier: Event, later: Event): boolean {
  if (later.enabledBy === earlier.index) return false
  if (later.step.choice.action === 'victim') return false
  return earlier.step.flow !== later.step.flow || earlier.step.lane !== later.step.lane
}

function notAfter(trace: Trace, earlier: Event): number[] {
  return trace.events
    .filter(
      ({ index, past }) => index !== earlier.index && ((past >> BigInt(earlier.index)) & 1n) === 0n,
    )
    .map(({ index }) => index)
}

/** A deadlock's other ends: the steps up to it, and another flow that dies of it. */
export function otherVictims(
  trace: Trace,
): { readonly choices: readonly Choice[]; readonly wanted: Wanted }[] {
  return trace.events.flatMap(({ index, step }) => {
    if (step.choice.action !== 'victim') return []
    const before = trace.events.slice(0, index)
    const others = (trace.run.decisions[index]?.enabled ?? []).filter(
      ({ choice }) => choice.action === 'victim' && choice.flow !== step.flow,
    )
    return others.map(({ choice, fingerprint }) => {
      const ordinal = before.filter((event) => sameLane(event.step.choice, choice)).length
      return {
        choices: [...before.map((event) => event.step.choice), choice],
        wanted: {
          nodes: before.map(({ node }) => node),
          last: identityOf(choice.flow, { choice, ordinal, fingerprint }),
        },
      }
    })
  })
}

/** `rename` says which flow stands for which, for flows that are alike. */
export function wantedOf(beginning: Beginning, nodes: Nodes, rename?: readonly number[]): Wanted {
  const { trace, events, last } = beginning
  const name = (flow: number): number => rename?.[flow] ?? flow
  const identity = identityOf(name(last.step.flow), last)
  if (rename === undefined)
    return { nodes: events.map((index) => (trace.events[index] as Event).node), last: identity }
  const numbers = new Map<number, number>()
  for (const index of events) {
    const event = trace.events[index] as Event
    const direct = event.direct.map((before) => numbers.get(before) as number)
    numbers.set(index, nodes.number(identityOf(name(event.step.flow), event), direct))
  }
  return { nodes: [...numbers.values()], last: identity }
}
