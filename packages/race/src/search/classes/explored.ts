/** The classes that were run, and whether a beginning is the beginning of one of them. */
import type { Wanted } from './reversal.ts'
import { type Event, identityOf, type Trace } from '../trace.ts'

export class Explored {
  readonly #traces: Trace[] = []
  /** Which traces contain a node. */
  readonly #where = new Map<number, number[]>()
  /** The nodes that a step was seen as, each with the nodes directly before it. */
  readonly #seen = new Map<string, Map<number, readonly number[]>>()

  get size(): number {
    return this.#traces.length
  }

  /** Adds the class of a run; the run that was of the same class, if there was one. */
  add(trace: Trace): Trace | undefined {
    const known = this.containing([...trace.nodes]).find(
      (other) => other.nodes.size === trace.nodes.size,
    )
    if (known !== undefined) return known
    const place = this.#traces.push(trace) - 1
    for (const event of trace.events) {
      const places = this.#where.get(event.node)
      if (places === undefined) this.#where.set(event.node, [place])
      else places.push(place)
      const identity = identityOf(event.step.flow, event)
      const nodes = this.#seen.get(identity) ?? new Map<number, readonly number[]>()
      this.#seen.set(identity, nodes)
      nodes.set(
        event.node,
        event.direct.map((index) => (trace.events[index] as Event).node),
      )
    }
    return undefined
  }

  /**
   * Whether some run begins so: it contains all of the nodes and, after nothing but some of them, the
   * last step.
   */
  covers({ nodes, last }: Wanted): boolean {
    const before = new Set(nodes)
    for (const [node, direct] of this.#seen.get(last) ?? [])
      if (direct.every((one) => before.has(one)) && this.#contains([node, ...nodes])) return true
    return false
  }

  /** The runs that contain all of the nodes. */
  containing(nodes: readonly number[]): Trace[] {
    return this.#candidates(nodes).filter((trace) => nodes.every((node) => trace.nodes.has(node)))
  }

  #contains(nodes: readonly number[]): boolean {
    return this.#candidates(nodes).some((trace) => nodes.every((node) => trace.nodes.has(node)))
  }

  /** The runs that contain the rarest of the nodes. */
  #candidates(nodes: readonly number[]): Trace[] {
    let rarest: readonly number[] | undefined
    for (const node of nodes) {
      const places = this.#where.get(node) ?? []
      if (rarest === undefined || places.length < rarest.length) rarest = places
    }
    return rarest === undefined ? this.#traces : rarest.map((place) => this.#traces[place] as Trace)
  }
}
