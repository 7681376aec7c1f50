/** Ways to choose the next step. */
import type { Choice, Decision, Pending, Run, Step } from '../core/model.ts'
import type { Random } from './random.ts'
import { sameLane } from './trace.ts'

export type Policy = (decision: Decision, steps: readonly Step[]) => Choice

/** A step to make, and what must be waiting there if nothing has changed. */
export interface Planned {
  readonly choice: Choice
  readonly fingerprint?: string
}

/** What makes the same run again. */
export function planOf({ steps }: Run): Planned[] {
  return steps.map(({ choice }) => ({ choice }))
}

/** A flow that goes round without end would starve the others: after so many steps it is left. */
const PATIENCE = 60

/** Stays with a flow while it can go on; then the first that can. */
export const stay: Policy = (decision, steps) => {
  const last = steps.at(-1)
  const own = decision.enabled.find(({ choice }) => choice.flow === last?.flow)
  if (own !== undefined && !isGoingRound(steps)) return own.choice
  const other = decision.enabled.find(({ choice }) => choice.flow !== last?.flow)
  return (other ?? (decision.enabled[0] as Pending)).choice
}

function isGoingRound(steps: readonly Step[]): boolean {
  const flow = steps.at(-1)?.flow
  return steps.length > PATIENCE && steps.slice(-PATIENCE).every((step) => step.flow === flow)
}

/** Another flow than the one before, wherever one can go on; one of them first. */
export function inTurns(first: number): Policy {
  return (decision, steps) => {
    const last = steps.at(-1)?.flow
    const next = decision.enabled.find(({ choice }) =>
      last === undefined ? choice.flow === first : choice.flow !== last,
    )
    return (next ?? (decision.enabled[0] as Pending)).choice
  }
}

/** One flow after another. */
export function inOrder(order: readonly number[]): Policy {
  return (decision) => {
    for (const flow of order) {
      const pending = decision.enabled.find(({ choice }) => choice.flow === flow)
      if (pending !== undefined) return pending.choice
    }
    return (decision.enabled[0] as Pending).choice
  }
}

/** Any of what is possible, each equally likely. */
export function atRandom(random: Random): Policy {
  return (decision) => random.pick(decision.enabled).choice
}

/**
 * Probabilistic concurrency testing: random priorities, lowered at `depth` - 1 random places. A bug that
 * needs `depth` orderings among `flows` flows and `length` steps shows with a probability of at least
 * 1 / (flows × length^(depth - 1)).
 */
export function byPriority(random: Random, flows: number, length: number, depth: number): Policy {
  const priorities = random.shuffle([...Array(flows).keys()].map((flow) => flow + depth))
  const changes = new Map<number, number>()
  for (let change = depth - 1; change >= 1; change--) changes.set(random.below(length), change)
  return (decision, steps) => {
    const highest = (): Pending =>
      decision.enabled.reduce((best, pending) =>
        (priorities[pending.choice.flow] ?? 0) > (priorities[best.choice.flow] ?? 0)
          ? pending
          : best,
      )
    const lowered = changes.get(steps.length)
    if (lowered !== undefined) priorities[highest().choice.flow] = lowered
    return highest().choice
  }
}

/** Makes the planned steps and then does as `then` says; a plan that does not fit is given up. */
export class Follow {
  /** Said when something else stood there than what the plan was made from. */
  divergence: string | undefined
  readonly #plan: readonly Planned[]
  readonly #then: Policy

  constructor(plan: readonly Planned[], then: Policy = stay) {
    this.#plan = plan
    this.#then = then
  }

  readonly decide: Policy = (decision, steps) => {
    const planned = this.#plan[steps.length]
    if (planned === undefined || this.divergence !== undefined) return this.#then(decision, steps)
    const pending = decision.enabled.find(
      ({ choice }) =>
        sameLane(choice, planned.choice) &&
        (choice.action === 'victim') === (planned.choice.action === 'victim'),
    )
    if (pending === undefined)
      this.divergence = `step ${steps.length + 1} was expected from a flow that had nothing to do there`
    else if (planned.fingerprint !== undefined && planned.fingerprint !== pending.fingerprint)
      this.divergence = `step ${steps.length + 1} was expected to be another: ${shown(pending)}`
    else return planned.choice
    return this.#then(decision, steps)
  }
}

function shown(pending: Pending): string {
  const text = pending.statements.join('; ').replace(/\s+/g, ' ')
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
