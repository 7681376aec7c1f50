/**
 * Up to how many preemptions every schedule is of a class that was run. A schedule is followed in
 * thought through the runs that were made: as long as some run contains the steps so far, what could be
 * chosen next is known from it.
 */
import type { Explored } from './explored.ts'
import type { Event, Trace } from '../trace.ts'

/** More places than this are not looked at: then nothing is claimed. */
const MOST_PLACES = 20_000

/** The largest number of preemptions below `limit` for which it holds; undefined if for none. */
export function preemptionBound(explored: Explored, limit: number): number | undefined {
  const places = { left: MOST_PLACES }
  let bound: number | undefined
  for (let preemptions = 0; preemptions < limit; preemptions++) {
    const walk = new Walk(explored, places)
    if (!walk.covered([], undefined, preemptions)) break
    bound = preemptions
  }
  return bound
}

class Walk {
  readonly #explored: Explored
  readonly #places: { left: number }
  readonly #seen = new Set<string>()

  constructor(explored: Explored, places: { left: number }) {
    this.#explored = explored
    this.#places = places
  }

  /** Whether every way on from here, with so many preemptions, was run. `done`: nodes of the steps. */
  covered(done: readonly number[], current: number | undefined, preemptions: number): boolean {
    const key = `${[...done].sort((one, other) => one - other).join()} ${current} ${preemptions}`
    if (this.#seen.has(key)) return true
    this.#seen.add(key)
    if (this.#places.left-- <= 0) return false
    const traces = this.#explored.containing(done)
    const before = new Set(done)
    const waiting = new Map<number, number | undefined>()
    for (const trace of traces)
      for (const event of nextEvents(trace, before)) {
        const { flow } = event.step
        // Chosen now, it would have only what is done before it; some run must have that.
        const node = isNext(trace, event, before) ? event.node : undefined
        waiting.set(flow, node ?? waiting.get(flow))
      }
    for (const [flow, node] of waiting) {
      const cost = current !== undefined && flow !== current && waiting.has(current) ? 1 : 0
      if (cost > preemptions) continue
      if (node === undefined) return false
      if (!this.covered([...done, node], flow, preemptions - cost)) return false
    }
    return true
  }
}

/** The first step of each flow that is not done, if it could be chosen. */
function nextEvents(trace: Trace, done: ReadonlySet<number>): Event[] {
  const flows = new Set<number>()
  return trace.events.filter((event) => {
    if (done.has(event.node) || flows.has(event.step.flow)) return false
    flows.add(event.step.flow)
    return event.enabledBy === -1 || done.has((trace.events[event.enabledBy] as Event).node)
  })
}

function isNext(trace: Trace, event: Event, done: ReadonlySet<number>): boolean {
  return event.direct.every((index) => done.has((trace.events[index] as Event).node))
}
