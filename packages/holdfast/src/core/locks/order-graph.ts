/**
 * Which kind of lock was taken before which, as it was seen. Two transactions can deadlock if their orders
 * form a cycle; what follows decides when they do. A node is what the order of the code is about: a
 * namespace, the rows of a table.
 *
 * - Taken in two calls, the order is that of the code, whatever the keys: an edge `code`.
 * - Taken in one call, the order is that of the numbers, across namespaces: edges `up`, both ways. A cycle of
 *   nothing but `up` cannot be: the numbers would have to grow for ever.
 * - Two keys of one namespace in two calls are `up` or `down`, by their numbers.
 *
 * So a closed walk is a cycle unless it goes only up, or only down. Where two edges meet, one transaction waits
 * for what the other holds: one of the two has to be exclusive.
 */

export type OrderMode = 'exclusive' | 'shared'

/** One lock: what it belongs to and its number there, if it has one. */
export interface OrderLock {
  readonly node: string
  readonly mode: OrderMode
  readonly id?: bigint
}

/** One step of a cycle: `after` was asked for while `before` was held, or both in one call. */
export interface OrderStep {
  readonly before: string
  readonly after: string
  readonly together: boolean
  /** The caller's line that asked, the first time. */
  readonly at: string
}

/** What closed a cycle: its steps, the one that closed it first. */
export interface OrderCycle {
  readonly steps: readonly OrderStep[]
  /** Nothing like it was told before: not between these two nodes. */
  readonly fresh: boolean
}

type Direction = 'code' | 'up' | 'down'

interface Variant {
  readonly by: Direction
  /** Both were asked for in the same call. */
  readonly together: boolean
  readonly held: OrderMode
  readonly wanted: OrderMode
}

interface Link {
  /** By the number of the variant: where it was first seen. */
  readonly places: Map<number, string>
  /** Those that would close a cycle; they are no part of the graph. */
  readonly faults: Map<number, readonly OrderStep[]>
}

/** All locks of one node and mode. */
interface Group {
  readonly node: string
  readonly mode: OrderMode
  count: number
  least: bigint | undefined
  most: bigint | undefined
}

interface Visit {
  readonly node: string
  readonly arrived: OrderMode
  /** Bit 1: some edge need not go up; bit 2: some edge need not go down. */
  readonly turns: number
  readonly step: OrderStep
  readonly from: Visit | undefined
}

/** A program has some dozens of pairs. One with namespaces made of data is watched as far as this. */
const mostVariants = 5_000

const variants: readonly Variant[] = (['code', 'up', 'down', 'up'] as const).flatMap((by, at) =>
  (['shared', 'exclusive'] as const).flatMap((held) =>
    (['shared', 'exclusive'] as const).map((wanted) => ({ by, together: at === 3, held, wanted })),
  ),
)

function variantOf(by: Direction, together: boolean, held: OrderMode, wanted: OrderMode): number {
  const kind = together ? 3 : by === 'code' ? 0 : by === 'up' ? 1 : 2
  return kind * 4 + (held === 'exclusive' ? 2 : 0) + (wanted === 'exclusive' ? 1 : 0)
}

export class OrderGraph {
  readonly #links = new Map<string, Map<string, Link>>()
  readonly #told = new Set<string>()
  #size = 0

  /** How much it remembers. */
  get size(): number {
    return this.#size
  }

  /**
   * Learns that `taken` were asked for in one call while `held` were held. Neither names a lock that the
   * transaction had already. Says what cycle that closes, one that nobody was told about first.
   */
  learn(
    held: readonly OrderLock[],
    taken: readonly OrderLock[],
    place: () => string,
  ): OrderCycle | undefined {
    const before = grouped(held)
    const now = grouped(taken)
    let found: OrderCycle | undefined
    const add = (from: Group, to: Group, by: Direction, together: boolean): void => {
      const cycle = this.#add(from, to, variantOf(by, together, from.mode, to.mode), place)
      if (found === undefined || (cycle?.fresh === true && !found.fresh)) found = cycle ?? found
    }
    for (const to of now) {
      for (const from of before) {
        if (from.node !== to.node) add(from, to, 'code', false)
        else {
          if (isLess(from.least, to.most)) add(from, to, 'up', false)
          if (isLess(to.least, from.most)) add(from, to, 'down', false)
        }
      }
      for (const from of now) if (from !== to || to.count > 1) add(from, to, 'up', true)
    }
    return found
  }

  #add(from: Group, to: Group, number: number, place: () => string): OrderCycle | undefined {
    const link = this.#link(from.node, to.node)
    if (link === undefined || link.places.has(number)) return undefined
    const known = link.faults.get(number)
    if (known !== undefined) return { steps: known, fresh: false }
    if (this.#size >= mostVariants) return undefined
    this.#size += 1
    const { together } = variants[number] as Variant
    const step = { before: from.node, after: to.node, together, at: place() }
    const steps = this.#cycleThrough(step, variants[number] as Variant)
    if (steps === undefined) {
      link.places.set(number, step.at)
      return undefined
    }
    link.faults.set(number, steps)
    const pair = JSON.stringify([from.node, to.node].toSorted())
    const fresh = !this.#told.has(pair)
    this.#told.add(pair)
    return { steps, fresh }
  }

  #link(from: string, to: string): Link | undefined {
    let links = this.#links.get(from)
    const known = links?.get(to)
    if (known !== undefined || this.#size >= mostVariants) return known
    if (links === undefined) this.#links.set(from, (links = new Map<string, Link>()))
    const made: Link = { places: new Map(), faults: new Map() }
    links.set(to, made)
    return made
  }

  /** The shortest way back from where the step leads to where it came from. */
  #cycleThrough(first: OrderStep, { by, held, wanted }: Variant): readonly OrderStep[] | undefined {
    const start = { node: first.after, arrived: wanted, turns: turnsOf(by), step: first }
    const queue: Visit[] = [{ ...start, from: undefined }]
    const seen = new Set<string>()
    for (let visit = queue.shift(); visit !== undefined; visit = queue.shift()) {
      const state = `${visit.arrived}${visit.turns}${visit.node}`
      if (seen.has(state)) continue
      seen.add(state)
      if (visit.node === first.before && visit.turns === 3 && isWait(visit.arrived, held)) {
        return stepsTo(visit)
      }
      queue.push(...this.#onwards(visit))
    }
    return undefined
  }

  *#onwards(visit: Visit): Generator<Visit> {
    for (const [after, { places }] of this.#links.get(visit.node) ?? []) {
      for (const [number, at] of places) {
        const { by, together, held, wanted } = variants[number] as Variant
        if (!isWait(visit.arrived, held)) continue
        const step = { before: visit.node, after, together, at }
        const turns = visit.turns | turnsOf(by)
        yield { node: after, arrived: wanted, turns, step, from: visit }
      }
    }
  }
}

function turnsOf(by: Direction): number {
  return by === 'code' ? 3 : by === 'down' ? 1 : 2
}

/** Whether somebody who wants it waits for somebody who holds it. */
function isWait(wanted: OrderMode, held: OrderMode): boolean {
  return wanted === 'exclusive' || held === 'exclusive'
}

function stepsTo(last: Visit): readonly OrderStep[] {
  const steps: OrderStep[] = []
  for (let visit: Visit | undefined = last; visit !== undefined; visit = visit.from) {
    steps.unshift(visit.step)
  }
  return steps
}

function grouped(locks: readonly OrderLock[]): readonly Group[] {
  const groups = new Map<string, Group>()
  for (const { node, mode, id } of locks) {
    const key = mode + node
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { node, mode, count: 1, least: id, most: id })
    else {
      group.count += 1
      if (isLess(id, group.least)) group.least = id
      if (isLess(group.most, id)) group.most = id
    }
  }
  return [...groups.values()]
}

function isLess(a: bigint | undefined, b: bigint | undefined): boolean {
  return a !== undefined && b !== undefined && a < b
}
