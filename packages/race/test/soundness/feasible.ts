import { formatError } from './outcome.ts'
import type { Permutation } from './parse-permutations.ts'
import type { Spec } from './parse-spec.ts'

const deadlock = formatError('ERROR', 'deadlock detected')

export interface Feasible {
  /** Permutations that can be: no step is sent on a session that still waits. */
  readonly possible: readonly Permutation[]
  /** How many cannot be. */
  readonly impossible: number
  /** Cancelled by the referee although they could have gone on: to be run once more. */
  readonly again: readonly Permutation[]
}

/**
 * isolationtester runs every order of steps, also those in which a session would have to send a
 * step while its former one still waits for a lock. No client can do that, so they are told apart
 * here, and each claim is checked against the other permutations: up to the point where it got
 * stuck, another one that went on with another session must have seen the same step waiting.
 */
export function tellFeasible(spec: Spec, permutations: readonly Permutation[]): Feasible {
  const sessionOf = new Map(
    spec.sessions.flatMap(({ name, steps }) => steps.map((step) => [step.name, name])),
  )
  const possible: Permutation[] = []
  const again: Permutation[] = []
  const claims: { prefix: string; step: string; waits: string; permutation: Permutation }[] = []
  const seenWaiting = new Map<string, Set<string>>()
  const deadlocked = new Set<string>()

  for (const permutation of permutations) {
    const { steps, waitingBefore, results, cancelled } = permutation
    const stuckAfter = cancelled[0]?.sent ?? Number.POSITIVE_INFINITY
    for (const [place, waiting] of waitingBefore.entries()) {
      if (place >= stuckAfter) break
      const prefix = steps.slice(0, place).join(' ')
      const known = seenWaiting.get(prefix) ?? new Set()
      seenWaiting.set(prefix, known)
      known.add([...waiting].toSorted().join(' '))
      const sent = steps.slice(0, place)
      if (sent.some((step) => results.get(step) === deadlock)) deadlocked.add(prefix)
    }
    if (cancelled.length === 0) {
      possible.push(permutation)
      continue
    }
    // Cancelled at rest after so many steps: legitimate if the next step's session was waiting.
    const next = steps[stuckAfter]
    const waits = cancelled.find(
      ({ step, sent }) =>
        sent === stuckAfter && next && sessionOf.get(step) === sessionOf.get(next),
    )
    if (next === undefined || waits === undefined) again.push(permutation)
    else {
      const prefix = steps.slice(0, stuckAfter).join(' ')
      claims.push({ prefix, step: next, waits: waits.step, permutation })
    }
  }

  for (const [prefix, sets] of seenWaiting) {
    // A deadlock takes its time to be noticed, and isolationtester may go on before that.
    if (sets.size > 1 && !deadlocked.has(prefix)) {
      const text = [...sets].map((set) => `{${set}}`).join(' and ')
      throw new Error(`${spec.name}: after "${prefix}" different steps were waiting: ${text}`)
    }
  }
  let impossible = 0
  for (const { prefix, waits, permutation } of claims) {
    const witnessed = [...(seenWaiting.get(prefix) ?? [])].some((set) =>
      set.split(' ').includes(waits),
    )
    if (witnessed) impossible += 1
    else again.push(permutation)
  }
  return { possible, impossible, again }
}
