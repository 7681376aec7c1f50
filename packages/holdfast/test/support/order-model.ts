import type { LockMode } from '../../src/core/locks/wanted-lock.ts'

/** Transactions that take locks, and whether they can all end up waiting for each other. */

export interface ModelLock {
  readonly number: number
  readonly mode: LockMode
}

export interface Call {
  readonly locks: readonly ModelLock[]
  /** Does not wait. */
  readonly tries?: boolean | undefined
}

export interface Instance {
  readonly calls: readonly Call[]
}

/** A transaction in the code: which namespaces, in which calls. Which keys is left open. */
export type Shape = readonly ShapeCall[]

interface ShapeCall {
  readonly slots: readonly { readonly namespace: string; readonly mode: LockMode }[]
  readonly tries?: boolean
  /** The code sorts: greater than every earlier key of its namespace. */
  readonly sorted?: boolean
  /** The same key as the first one of its namespace. */
  readonly again?: boolean
}

const namespaces = ['a', 'b', 'c']
const keysOfEach = 5

/** The numbers of the namespaces lie among each other, as hashes do. */
export function namespaceOf(number: number): string {
  return namespaces[number % namespaces.length] as string
}

function numbersOf(namespace: string): number[] {
  const at = namespaces.indexOf(namespace)
  return Array.from({ length: keysOfEach }, (_, turn) => turn * namespaces.length + at)
}

/** The shape with all keys that it can have. */
export function instancesOf(shape: Shape): Instance[] {
  let instances: Call[][] = [[]]
  for (const call of shape) {
    instances = instances.flatMap((calls) => callsOf(call, calls).map((next) => [...calls, next]))
  }
  return instances.map((calls) => ({ calls }))
}

function callsOf({ slots, tries, sorted, again }: ShapeCall, earlier: readonly Call[]): Call[] {
  let choices: ModelLock[][] = [[]]
  for (const { namespace, mode } of slots) {
    const had = earlier
      .flatMap(({ locks }) => locks.map(({ number }) => number))
      .filter((number) => namespaceOf(number) === namespace)
    const fits = numbersOf(namespace).filter((number) => {
      if (again === true) return number === had[0]
      return sorted !== true || had.every((each) => each < number)
    })
    choices = choices.flatMap((locks) =>
      fits
        .filter((number) => locks.every((lock) => lock.number !== number))
        .map((number) => [...locks, { number, mode }]),
    )
  }
  return choices.map((locks) => ({ locks, tries }))
}

/** A step of a transaction: it takes one lock, and waits for it unless it only tries. */
interface Step extends ModelLock {
  readonly tries: boolean
}

/** In the order they are taken: within a call by number. What is held already is no step. */
function stepsOf({ calls }: Instance): Step[] {
  const steps: Step[] = []
  for (const { locks, tries } of calls) {
    for (const lock of locks.toSorted((a, b) => a.number - b.number)) {
      const had = steps.filter(({ number }) => number === lock.number)
      if (had.some(({ mode }) => mode === 'exclusive' || mode === lock.mode)) continue
      steps.push({ ...lock, tries: tries === true })
    }
  }
  return steps
}

const conflict = (a: LockMode, b: LockMode): boolean => a === 'exclusive' || b === 'exclusive'

/** A transaction at one of its steps: what it holds, and what it waits for. */
interface Point {
  /** Points that look alike are one: what a transaction would do later does not matter. */
  readonly looks: string
  readonly instance: Instance
  readonly held: ReadonlyMap<number, LockMode>
  readonly wants: Step
}

function pointsOf(instance: Instance): Point[] {
  const steps = stepsOf(instance)
  return steps.flatMap((wants, at) => {
    if (at === 0 || wants.tries) return []
    const held = new Map<number, LockMode>()
    for (const { number, mode } of steps.slice(0, at)) {
      if (held.get(number) !== 'exclusive') held.set(number, mode)
    }
    const looks = `${[...held].toSorted(([a], [b]) => a - b).join(' ')} ${wants.number}${wants.mode}`
    return [{ looks, instance, held, wants }]
  })
}

/** A deadlock of more needs more namespaces than there are. */
const mostTransactions = 4

/**
 * Transactions that wait for each other in a circle, each at a point that it can reach beside the others. They
 * can: as long as nothing that they hold is in conflict, each goes to its point without any wait.
 */
export function canDeadlock(instances: readonly Instance[]): readonly Instance[] | undefined {
  const points = [
    ...new Map(instances.flatMap(pointsOf).map((point) => [point.looks, point])).values(),
  ]
  const rank = new Map(points.map((point, at) => [point, at]))
  const holders = new Map<number, Point[]>()
  for (const point of points) {
    for (const number of point.held.keys()) {
      const list = holders.get(number)
      if (list === undefined) holders.set(number, [point])
      else list.push(point)
    }
  }
  const search = (chain: readonly Point[]): readonly Point[] | undefined => {
    const [first, last] = [chain[0] as Point, chain.at(-1) as Point]
    for (const next of holders.get(last.wants.number) ?? []) {
      // A circle is looked for from one of its points only.
      if ((rank.get(next) as number) < (rank.get(first) as number)) continue
      if (!isWaitedFor(next, last) || !chain.every((point) => fit(point, next))) continue
      const longer = [...chain, next]
      if (isWaitedFor(first, next)) return longer
      const found = longer.length < mostTransactions ? search(longer) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }
  for (const point of points) {
    const found = search([point])
    if (found !== undefined) return found.map(({ instance }) => instance)
  }
  return undefined
}

function isWaitedFor(holder: Point, waiter: Point): boolean {
  const mode = holder.held.get(waiter.wants.number)
  return mode !== undefined && conflict(mode, waiter.wants.mode)
}

function fit(one: Point, other: Point): boolean {
  for (const [number, mode] of one.held) {
    const theirs = other.held.get(number)
    if (theirs !== undefined && conflict(mode, theirs)) return false
  }
  return true
}

/** Whether some interleaving, step by step, ends with nobody able to go on. */
export function stuckInterleaving(instances: readonly Instance[]): boolean {
  const all = instances.map(stepsOf)
  const seen = new Set<string>()
  const free = (who: number, at: readonly number[]): boolean => {
    const step = all[who]?.[at[who] as number] as Step
    return all.every(
      (steps, other) =>
        other === who ||
        steps
          .slice(0, at[other])
          .every((s) => s.number !== step.number || !conflict(s.mode, step.mode)),
    )
  }
  const visit = (at: readonly number[]): boolean => {
    if (seen.has(at.join())) return false
    seen.add(at.join())
    const going = all.flatMap((steps, who) => ((at[who] as number) < steps.length ? [who] : []))
    if (going.length === 0) return false
    const moves = going.filter((who) => free(who, at))
    if (moves.length === 0) return true
    return moves.some((who) => visit(at.map((step, each) => (each === who ? step + 1 : step))))
  }
  return visit(all.map(() => 0))
}

/** Some shapes, by a seed. */
export function someSystem(seed: number): Shape[] {
  const random = randomOf(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const withShared = random() < 0.4
  const used = namespaces.slice(0, withShared ? 2 : 3)
  const slot = () => ({
    namespace: pick(used),
    mode: withShared && random() < 0.5 ? ('shared' as const) : ('exclusive' as const),
  })
  const call = (): ShapeCall => {
    const slots = Array.from({ length: random() < 0.3 ? 2 : 1 }, slot)
    // Two of one namespace in one call have one mode: which of them is the greater is open.
    const [first, second] = slots
    if (first !== undefined && second?.namespace === first.namespace) slots[1] = first
    return { slots, sorted: random() < 0.7, tries: random() < 0.1 }
  }
  return Array.from({ length: pick([1, 2, 2, 3]) }, () => {
    const calls = Array.from({ length: pick([1, 2, 2, 3]) }, call)
    return calls.flatMap(({ slots }) => slots).length > 3 ? calls.slice(0, 1) : calls
  })
}

function randomOf(seed: number): () => number {
  let state = seed * 2654435761
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}
