/**
 * Whether others could act inside of a step. The server runs the parts of some steps one after the other (a function, a
 * trigger, a pipeline), and others may act between two of them. Such an order is the same as one that was run if
 * everybody who acts there can be moved before the first part or after the last. Who has something in common with a part
 * before cannot go before it, who has something in common with a part behind cannot go after it; and who follows
 * somebody has to go where he goes.
 */
import type { Dependent } from '../../core/footprint.ts'
import type { Footprint, Run } from '../../core/model.ts'

/** What a flow did at one place, in some run. */
interface Seen {
  readonly flow: number
  readonly lane: number
  /** How many steps its flow had made. */
  readonly place: number
  readonly footprint: Footprint
  /** Advisory locks that its transaction had, before it and with it. */
  readonly had: ReadonlySet<string>
  readonly has: ReadonlySet<string>
  readonly text: string
}

/** A step of somebody else, seen from a step with parts, which are counted from 1. */
interface Other {
  readonly seen: Seen
  /** The first and the last part that it has something in common with. */
  readonly first: number
  readonly last: number
  /** From behind this part on an advisory lock keeps it out. */
  readonly out: number
}

export interface Woven {
  readonly flow: number
  readonly text: string
}

export class Weave {
  readonly #dependent: Dependent
  /** By all that decides: the same steps come again in many runs. */
  readonly #seen = new Map<string, Seen>()

  constructor(dependent: Dependent) {
    this.#dependent = dependent
  }

  learn(run: Run): void {
    const places = new Map<number, number>()
    const held = new Map<string, ReadonlySet<string>>()
    for (const { flow, lane, footprint, after, half, statements } of run.steps) {
      const place = places.get(flow) ?? 0
      places.set(flow, place + 1)
      const session = `${flow}.${lane}`
      const had = held.get(session) ?? new Set()
      const has = new Set([...had, ...keysOf(footprint)])
      // A lock of the session can be given back in the middle.
      const released = new Set(footprint.ends?.locks)
      if (after === 'I' && half !== 'execute') held.delete(session)
      else held.set(session, new Set([...has].filter((key) => !released.has(key))))
      const seen = { flow, lane, place, footprint, had, has, text: statements.join('; ') }
      this.#seen.set(JSON.stringify([flow, lane, place, footprint, [...had]]), seen)
    }
  }

  /** Steps inside of which others could act in a way that no run shows. */
  woven(): Woven[] {
    const found = new Map<string, Woven>()
    for (const step of this.#seen.values()) {
      const { flow, text } = step
      const key = `${flow} ${text}`
      if (!found.has(key) && this.#isOpen(step)) found.set(key, { flow, text })
    }
    return [...found.values()]
  }

  #isOpen(step: Seen): boolean {
    const { parts } = step.footprint
    if (parts === undefined) return false
    const others = [...this.#seen.values()].flatMap((seen): Other[] => {
      if (seen.flow === step.flow && seen.lane === step.lane) return []
      const met = parts.map((part) => this.#dependent(part, seen.footprint))
      if (!met.includes(true)) return []
      const first = met.indexOf(true) + 1
      return [{ seen, first, last: met.lastIndexOf(true) + 1, out: keptOut(seen, step, parts) }]
    })
    return others.some(({ seen, first, out }) =>
      others.some(
        (other) => first < Math.min(out, other.last, other.out) && follows(other.seen, seen),
      ),
    )
  }
}

/** Of different flows one may have waited for the other. */
function follows(later: Seen, earlier: Seen): boolean {
  return later === earlier || later.flow !== earlier.flow || later.place > earlier.place
}

function keptOut({ has }: Seen, { had }: Seen, parts: readonly Footprint[]): number {
  if ([...had].some((key) => has.has(key))) return 0
  // Of several that take locks nobody tells which one took which: with the last all are there.
  const taken = parts.findLastIndex((part) => keysOf(part).some((key) => has.has(key)))
  return taken === -1 ? Number.POSITIVE_INFINITY : taken + 1
}

/** Advisory locks that a step waits for until it has them, and that nobody else can have with it. */
function keysOf({ touches }: Footprint): string[] {
  const tried = touches.filter(({ mode }) => mode === 'attempt').map(({ object }) => object)
  return touches
    .filter(({ object, mode }) => mode === 'exclusive' && object.startsWith('advisory #'))
    .map(({ object }) => object)
    .filter((object) => !tried.includes(object))
}
