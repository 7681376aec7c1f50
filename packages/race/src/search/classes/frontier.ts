/** What is still to be run: every reversal of a race that no run begins with yet, easiest first. */
import type { Dependent } from '../../core/footprint.ts'
import type { Run } from '../../core/model.ts'
import { Explored } from './explored.ts'
import { linearize, permutations } from '../linear.ts'
import type { Planned } from '../policy.ts'
import { preemptionBound } from './preemption-bound.ts'
import { type Beginning, otherVictims, reversals, type Wanted, wantedOf } from './reversal.ts'
import { type Event, Nodes, type Trace, traceOf } from '../trace.ts'

/** Beyond three preemptions a bound says little, and costs much to show. */
const MOST_BOUND = 4

interface Candidate {
  readonly plan: readonly Planned[]
  /** What makes it needless if a run begins so: one for each way to name like flows. */
  readonly wanted: readonly Wanted[]
}

/** What was learnt from a run. */
export interface Learnt {
  readonly trace: Trace
  /** An earlier run of the same class. */
  readonly known: Trace | undefined
}

export class Frontier {
  readonly #dependent: Dependent
  readonly #renamings: readonly (readonly number[])[]
  readonly #nodes = new Nodes()
  readonly #explored = new Explored()
  readonly #seen = new Set<string>()
  /** By preemptions. */
  readonly #queues: Candidate[][] = []
  #open = 0

  /** `renamings`: which flow may stand for which, without the identity. */
  constructor(dependent: Dependent, renamings: readonly (readonly number[])[] = []) {
    this.#dependent = dependent
    this.#renamings = renamings
  }

  get classes(): number {
    return this.#explored.size
  }

  get open(): number {
    return this.#open
  }

  /** Preemptions of what comes next; undefined when nothing is left. */
  get bound(): number | undefined {
    const bound = this.#queues.findIndex((queue) => queue !== undefined && queue.length > 0)
    return bound === -1 ? undefined : bound
  }

  /** From a run that ended in trouble nothing is learnt: what it began with was not brought to an end. */
  learn(run: Run): Learnt {
    const trace = this.trace(run)
    if (run.trouble !== undefined) return { trace, known: undefined }
    const known = this.#explored.add(trace)
    if (known === undefined) {
      for (const beginning of reversals(trace)) this.#offer(beginning)
      for (const { choices, wanted } of otherVictims(trace))
        this.#push(0, { plan: choices.map((choice) => ({ choice })), wanted: [wanted] })
    }
    return { trace, known }
  }

  /** Up to how many preemptions nothing was left out. */
  preemptionBound(): number | undefined {
    return this.#renamings.length > 0
      ? undefined
      : preemptionBound(this.#explored, Math.min(this.bound ?? MOST_BOUND, MOST_BOUND))
  }

  /** The partial order of a run, without learning from it. */
  trace(run: Run): Trace {
    return traceOf(run, this.#dependent, this.#nodes)
  }

  /** A plan with the fewest preemptions among those that lead to something new. */
  next(): readonly Planned[] | undefined {
    for (let bound = this.bound; bound !== undefined; bound = this.bound) {
      const candidate = this.#queues[bound]?.shift() as Candidate
      this.#open--
      if (!candidate.wanted.some((wanted) => this.#explored.covers(wanted))) return candidate.plan
    }
    return undefined
  }

  #offer(beginning: Beginning): void {
    const { trace, events, last } = beginning
    const own = wantedOf(beginning, this.#nodes)
    const key = `${own.nodes.toSorted((one, other) => one - other).join()} ${own.last}`
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    const wanted = [own, ...this.#renamings.map((names) => wantedOf(beginning, this.#nodes, names))]
    if (wanted.some((one) => this.#explored.covers(one))) return
    const { order, preemptions } = linearize(trace, events, last.index)
    const plan = order.map((index) => {
      const { choice, fingerprint } = trace.events[index] as Event
      return { choice, fingerprint }
    })
    this.#push(preemptions, { plan, wanted })
  }

  #push(preemptions: number, candidate: Candidate): void {
    while (this.#queues.length <= preemptions) this.#queues.push([])
    this.#queues[preemptions]?.push(candidate)
    this.#open++
  }
}

/** Which flow may stand for which, if those of a group are alike: all but the identity. */
export function renamingsOf(groups: readonly (readonly number[])[], flows: number): number[][] {
  const identity = [...Array(flows).keys()]
  let renamings: number[][] = [identity]
  for (const group of groups)
    renamings = renamings.flatMap((names) =>
      permutations(group).map((order) => {
        const renamed = [...names]
        group.forEach((flow, place) => {
          renamed[flow] = order[place] as number
        })
        return renamed
      }),
    )
  return renamings.filter((names) => names.some((name, flow) => name !== flow))
}
