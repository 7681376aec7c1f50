/** What is true of who waits for whom, because a test has made it so: one queue for each resource, nobody in a circle. */

export type Mode = 'shared' | 'alone'

/** Something that is locked: a lock by name, or a row of the table. All of a kind are rows of one table. */
export interface Resource {
  readonly kind: 'name' | 'row'
  readonly number: number
}

/** One thing that a session does. */
export type Step =
  | { readonly does: 'takes'; readonly session: number; readonly of: number; readonly mode: Mode }
  | { readonly does: 'waits'; readonly session: number; readonly of: number; readonly mode: Mode }
  /** Its wait is cancelled; its transaction goes on. */
  | { readonly does: 'stops'; readonly session: number }

export interface Situation {
  readonly sessions: number
  readonly resources: readonly Resource[]
  readonly steps: readonly Step[]
}

interface Asked {
  readonly session: number
  readonly mode: Mode
}

/** Who is in the way of whom. */
export interface Edge {
  readonly of: number
  readonly by: number
  readonly kind: 'hard' | 'soft'
}

export class WaitModel {
  readonly #holders: Asked[][]
  readonly #queues: Asked[][]
  readonly waits: Map<number, number> = new Map()

  constructor(resources: number) {
    this.#holders = Array.from({ length: resources }, () => [])
    this.#queues = Array.from({ length: resources }, () => [])
  }

  holdersOf(resource: number): readonly Asked[] {
    return this.#holders[resource] as Asked[]
  }

  waitersOf(resource: number): readonly Asked[] {
    return this.#queues[resource] as Asked[]
  }

  holds(session: number, resource: number): boolean {
    return this.holdersOf(resource).some((each) => each.session === session)
  }

  /** Whether somebody would get it at once. */
  isFree(session: number, resource: number, mode: Mode): boolean {
    return this.#inTheWay({ session, mode }, resource, Infinity).length === 0
  }

  take(session: number, resource: number, mode: Mode): void {
    this.#holders[resource]?.push({ session, mode })
  }

  wait(session: number, resource: number, mode: Mode): void {
    this.#queues[resource]?.push({ session, mode })
    this.waits.set(session, resource)
  }

  /** Whether its wait would close a circle. */
  wouldCircle(session: number, resource: number, mode: Mode): boolean {
    const open = this.#inTheWay({ session, mode }, resource, Infinity).map(({ by }) => by)
    const met = new Set<number>()
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === session) return true
      if (met.has(next)) continue
      met.add(next)
      open.push(...this.edgesOf(next).map(({ by }) => by))
    }
    return false
  }

  /**
   * It waits no more, and whoever it kept back gets what it waits for. MariaDB serves a queue in its order. MySQL asks those for
   * whom it was the first in the way, and gives them what no holder excludes, also past others that came before.
   */
  stop(session: number, serves: 'in order' | 'past others'): readonly number[] {
    const resource = this.waits.get(session) as number
    const queue = this.#queues[resource] as Asked[]
    const asked = queue.filter((each) => this.edgesOf(each.session)[0]?.by === session)
    queue.splice(
      queue.findIndex((each) => each.session === session),
      1,
    )
    this.waits.delete(session)
    const granted: number[] = []
    for (const each of serves === 'in order' ? queue.slice() : asked) {
      const at = queue.indexOf(each)
      const ahead = serves === 'in order' ? at : 0
      if (this.#inTheWay(each, resource, ahead).length > 0) continue
      queue.splice(at, 1)
      this.waits.delete(each.session)
      this.#holders[resource]?.push(each)
      granted.push(each.session)
    }
    return granted
  }

  edgesOf(session: number): readonly Edge[] {
    const resource = this.waits.get(session)
    if (resource === undefined) return []
    const queue = this.#queues[resource] as Asked[]
    const at = queue.findIndex((each) => each.session === session)
    return this.#inTheWay(queue[at] as Asked, resource, at)
  }

  edges(): readonly Edge[] {
    return [...this.waits.keys()].flatMap((session) => this.edgesOf(session))
  }

  /** Everybody who waits for it, directly or not. */
  behind(session: number): ReadonlySet<number> {
    const found = new Set<number>()
    const edges = this.edges()
    const open = [session]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const { of, by } of edges) {
        if (by !== next || found.has(of)) continue
        found.add(of)
        open.push(of)
      }
    }
    return found
  }

  /** Holders first: who holds it and waits for more of it is in the way as a holder. */
  #inTheWay({ session, mode }: Asked, resource: number, upTo: number): Edge[] {
    const excludes = (other: Asked): boolean =>
      other.session !== session && (mode === 'alone' || other.mode === 'alone')
    const hard = this.holdersOf(resource).filter(excludes)
    const ahead = this.waitersOf(resource).slice(0, upTo).filter(excludes)
    const soft = ahead.filter((each) => !hard.some((one) => one.session === each.session))
    return [
      ...hard.map((each) => ({ of: session, by: each.session, kind: 'hard' as const })),
      ...soft.map((each) => ({ of: session, by: each.session, kind: 'soft' as const })),
    ]
  }
}

/** A number from 0 up to, and without, `below`. */
type Chance = (below: number) => number

/** The same numbers for the same seed. */
function chanceOf(seed: number): Chance {
  let state = (seed * 2_654_435_769 + 1) >>> 0
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state % below
  }
}

/** More in one queue are not all shown. */
const mostInQueue = 7

/** Sessions that take and wait for names and rows, as the seed says. */
export function situationOf(seed: number): Situation {
  const chance = chanceOf(seed)
  for (let at = 0; at < 20; at += 1) chance(2)
  const sessions = 4 + chance(7)
  const kinds = ['name', 'row'] as const
  const counts = { name: 1 + chance(3), row: 1 + chance(3) }
  const resources = kinds.flatMap((kind) =>
    Array.from({ length: counts[kind] }, (_, number) => ({ kind, number: number + 1 })),
  )
  const model = new WaitModel(resources.length)
  const steps: Step[] = []
  const modeFor = (of: number): Mode =>
    resources[of]?.kind === 'row' && chance(2) === 0 ? 'shared' : 'alone'
  for (let turn = 0; turn < 6 * sessions; turn += 1) {
    const session = chance(sessions)
    const own = resources.findIndex((_, of) =>
      model.holdersOf(of).some((each) => each.session === session && each.mode === 'shared'),
    )
    // One who has it shared may want it alone.
    const wantsMore = own !== -1 && turn > sessions && chance(3) === 0
    const of = wantsMore ? own : chance(resources.length)
    const mode = wantsMore ? 'alone' : modeFor(of)
    if (model.waits.has(session)) continue
    const holdsIt = model.holds(session, of)
    if (model.isFree(session, of, mode)) {
      if (holdsIt || model.waitersOf(of).length > 0) continue
      model.take(session, of, mode)
      steps.push({ does: 'takes', session, of, mode })
    } else if (turn > sessions && model.waitersOf(of).length < mostInQueue) {
      if (holdsIt && (mode === 'shared' || resources[of]?.kind === 'name')) continue
      if (model.wouldCircle(session, of, mode)) continue
      model.wait(session, of, mode)
      steps.push({ does: 'waits', session, of, mode })
    }
  }
  const waiting = [...model.waits.keys()]
  // Rather one that keeps others back.
  const first = waiting.filter((session) => model.behind(session).size > 0)
  const some = first.length > 0 ? first : waiting
  if (some.length > 0) steps.push({ does: 'stops', session: some[chance(some.length)] as number })
  return { sessions, resources, steps }
}
