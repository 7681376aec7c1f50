/** The classes that were run, and whether a beginning is the beginning of one of them. */
import type { Trace } from './trace.ts'

export class Explored {
  readonly #traces: Trace[] = []
  /** Which traces contain a node. */
  readonly #where = new Map<number, number[]>()

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
    for (const node of trace.nodes) {
      const places = this.#where.get(node)
      if (places === undefined) this.#where.set(node, [place])
      else places.push(place)
    }
    return undefined
  }

  /** Whether some run contains all of the nodes, and so begins with them. */
  covers(nodes: readonly number[]): boolean {
    return this.containing(nodes).length > 0
  }

  /** The runs that contain all of the nodes. */
  containing(nodes: readonly number[]): Trace[] {
    let rarest: readonly number[] = [...this.#traces.keys()]
    for (const node of nodes) {
      const places = this.#where.get(node) ?? []
      if (places.length < rarest.length) rarest = places
    }
    return rarest
      .map((place) => this.#traces[place] as Trace)
      .filter((trace) => nodes.every((node) => trace.nodes.has(node)))
  }
}
