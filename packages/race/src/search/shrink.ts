/** The same failure with fewer changes of flow, so that a person can follow it. Never longer. */
import type { Choice, Run } from '../core/model.ts'
import { linearize, preemptionsOf } from './linear.ts'
import { Follow } from './policy.ts'
import type { Tally } from './tally.ts'
import type { Trace } from './trace.ts'

/** What is made smaller, in order of weight. */
function measure(run: Run): readonly number[] {
  const turns = run.steps.filter(({ flow }, index) => flow !== run.steps[index - 1]?.flow).length
  return [preemptionsOf(run), turns, run.steps.length]
}

/** Whether the first is simpler; more steps are never simpler. */
export function isSimpler(one: Run, other: Run): boolean {
  if (one.steps.length > other.steps.length) return false
  const [left, right] = [measure(one), measure(other)]
  const place = left.findIndex((value, index) => value !== right[index])
  return place !== -1 && (left[place] as number) < (right[place] as number)
}

/** Runs that shrinking may cost. */
const MOST_RUNS = 40

/**
 * Slides independent steps together, then tries to join the turns of a flow, as long as that fails in the
 * same way. `same` says whether a run is the same failure.
 */
export async function shrink(
  tally: Tally,
  trace: Trace,
  same: (run: Run) => Promise<boolean>,
): Promise<Run> {
  let best = trace.run
  let runs = 0
  const tried = new Set<string>()
  const attempt = async (choices: readonly Choice[]): Promise<boolean> => {
    const key = JSON.stringify(choices)
    if (tried.has(key) || runs >= MOST_RUNS) return false
    tried.add(key)
    runs++
    const follow = new Follow(choices.map((choice) => ({ choice })))
    const run = await tally.run(follow.decide, 'shrink')
    if (run.trouble !== undefined || !isSimpler(run, best) || !(await same(run))) return false
    best = run
    return true
  }
  const { order } = linearize(
    trace,
    trace.events.map(({ index }) => index),
  )
  await attempt(order.map((index) => (trace.run.steps[index] as Run['steps'][number]).choice))
  for (let improved = true; improved; ) {
    improved = false
    for (const choices of joined(best)) {
      if (!(await attempt(choices))) continue
      improved = true
      break
    }
  }
  return best
}

/** Every way to move one turn of a flow next to its previous or next one. */
function joined(run: Run): Choice[][] {
  const turns: Choice[][] = []
  for (const { choice } of run.steps) {
    const last = turns.at(-1)
    if (last?.[0]?.flow === choice.flow) last.push(choice)
    else turns.push([choice])
  }
  const found: Choice[][] = []
  turns.forEach((turn, index) => {
    const next = turns.findIndex(
      (other, place) => place > index && other[0]?.flow === turn[0]?.flow,
    )
    if (next === -1) return
    const later = turns[next] as Choice[]
    // The turn waits for the later one, or the later one comes at once.
    found.push(turns.toSpliced(next, 0, turn).toSpliced(index, 1).flat())
    found.push(
      turns
        .toSpliced(next, 1)
        .toSpliced(index + 1, 0, later)
        .flat(),
    )
  })
  return found
}
