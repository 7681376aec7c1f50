/** The same failure with fewer changes of flow, so that a person can follow it. Never longer. */
import type { Choice, Run } from '../core/model.ts'
import { linearize, permutations, preemptionsOf } from './linear.ts'
import { Follow } from './policy.ts'
import type { Tally } from './tally.ts'
import type { Event, Trace } from './trace.ts'

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
 * An order of the same class in which each turn ends with a step that could not have come later: what a
 * flow decided on stands before the others, what it did about it after them.
 */
function late(trace: Trace): Choice[] {
  const order = trace.events.map(({ index }) => index)
  const flowAt = (place: number): number => trace.events[order[place] ?? -1]?.step.flow ?? -1
  const meets = (later: number, earlier: number): boolean =>
    (((trace.events[later] as Event).past >> BigInt(earlier)) & 1n) === 1n
  // From the back: a step moves to the next turn of its flow if nothing in between needs it.
  for (let place = order.length - 2; place >= 0; place--) {
    const flow = flowAt(place)
    if (flowAt(place + 1) === flow || flowAt(place - 1) !== flow) continue
    const next = order.findIndex((_, other) => other > place && flowAt(other) === flow)
    const index = order[place] as number
    if (next === -1 || order.slice(place + 1, next).some((later) => meets(later, index))) continue
    order.splice(next, 0, index)
    order.splice(place, 1)
  }
  return order.map((index) => (trace.events[index] as Event).step.choice)
}

/**
 * Slides independent steps together, then tries to join the turns of a flow, as long as that fails in the
 * same way. `same` says whether a run is the same failure.
 */
export async function shrink(
  tally: Tally,
  found: Run,
  traceOf: (run: Run) => Trace,
  same: (run: Run) => Promise<boolean>,
): Promise<Run> {
  let best = found
  let runs = 0
  const tried = new Set<string>()
  const attempt = async (
    choices: readonly Choice[],
    accept: (run: Run) => boolean = (run) => isSimpler(run, best),
  ): Promise<boolean> => {
    const key = JSON.stringify(choices)
    if (tried.has(key) || runs >= MOST_RUNS) return false
    tried.add(key)
    runs++
    const follow = new Follow(choices.map((choice) => ({ choice })))
    const run = await tally.run(follow.decide, 'shrink')
    if (run.trouble !== undefined || !accept(run) || !(await same(run))) return false
    best = run
    return true
  }
  const trace = traceOf(found)
  const { order } = linearize(
    trace,
    trace.events.map(({ index }) => index),
  )
  await attempt(order.map((index) => (trace.events[index] as Event).step.choice))
  for (const choices of interruptions(best)) if (await attempt(choices)) break
  for (let improved = true; improved; ) {
    improved = false
    for (const choices of joined(best)) {
      if (!(await attempt(choices))) continue
      improved = true
      break
    }
  }
  await attempt(late(traceOf(best)), (run) => !isSimpler(best, run))
  return best
}

/**
 * The simplest kind of race: one flow is interrupted once, and all the others run to their end. None if
 * it is that simple already.
 */
function interruptions(run: Run): Choice[][] {
  const flows = [...new Set(run.steps.map(({ flow }) => flow))].sort((one, other) => one - other)
  const [preemptions = 0, turns = 0] = measure(run)
  if (preemptions <= 1 && turns <= flows.length + 1) return []
  const stepsOf = (flow: number): Choice[] =>
    run.steps.filter((step) => step.flow === flow).map(({ choice }) => choice)
  return flows.flatMap((flow) => {
    const own = stepsOf(flow)
    const others = permutations(flows.filter((other) => other !== flow))
    return own
      .slice(1)
      .flatMap((_, place) =>
        others.map((order) => [
          ...own.slice(0, place + 1),
          ...order.flatMap(stepsOf),
          ...own.slice(place + 1),
        ]),
      )
  })
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
