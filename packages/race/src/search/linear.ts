/**
 * Orders of steps with few changes of flow: easier to read and, by experience, where bugs are. A
 * *preemption* is a change away from a flow that could have gone on.
 */
import type { Run } from '../core/model.ts'
import type { Event, Trace } from './trace.ts'

/** Changes away from a flow that could have gone on. */
export function preemptionsOf(run: Run): number {
  let count = 0
  run.steps.forEach((step, index) => {
    const before = run.steps[index - 1]
    if (before === undefined || before.flow === step.flow) return
    if (run.decisions[index]?.enabled.some(({ choice }) => choice.flow === before.flow)) count++
  })
  return count
}

/** Steps in an order, and how many preemptions it has. */
export interface Linear {
  readonly order: readonly number[]
  readonly preemptions: number
}

/**
 * An order of some events of a run, closed under what had to come before, with few preemptions: stays
 * with a flow while it can, for every order in which the flows may be preferred. `last` comes after all
 * of them, wherever it was.
 */
export function linearize(trace: Trace, chosen: readonly number[], last?: number): Linear {
  const flows = [...new Set(chosen.map((index) => (trace.events[index] as Event).step.flow))]
  let best: Linear | undefined
  for (const preference of preferences(flows)) {
    const linear = stay(trace, chosen, preference, last)
    if (best === undefined || linear.preemptions < best.preemptions) best = linear
  }
  return best ?? { order: [], preemptions: 0 }
}

/** All orders of a few flows; of many, only the turns of one. */
function preferences(flows: readonly number[]): number[][] {
  if (flows.length > 4)
    return flows.map((_, turn) => [...flows.slice(turn), ...flows.slice(0, turn)])
  return permutations(flows)
}

/** Every order of the items, in the order of the items. */
export function permutations<Item>(items: readonly Item[]): Item[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, index) =>
    permutations(items.toSpliced(index, 1)).map((rest) => [item, ...rest]),
  )
}

function stay(
  trace: Trace,
  chosen: readonly number[],
  preference: readonly number[],
  last: number | undefined,
): Linear {
  const queues = new Map<number, number[]>(preference.map((flow) => [flow, []]))
  for (const index of chosen) queues.get((trace.events[index] as Event).step.flow)?.push(index)
  const order: number[] = []
  const done = new Set<number>()
  let preemptions = 0
  let current: number | undefined
  const ready = (flow: number): number | undefined => {
    // Connections of one flow keep the order they had.
    const index = queues.get(flow)?.[0]
    const past = (trace.events[index ?? -1] as Event | undefined)?.direct
    return past?.every((one) => done.has(one)) === true ? index : undefined
  }
  const make = (flow: number, index: number): void => {
    if (current !== undefined && current !== flow && canGoOn(trace, current, done)) preemptions++
    order.push(index)
    done.add(index)
    current = flow
  }
  while (order.length < chosen.length) {
    // The victim of a deadlock is chosen at once after the step that closed it.
    const flow =
      preference.find((one) => isVictim(trace, ready(one))) ??
      (current !== undefined && ready(current) !== undefined
        ? current
        : preference.find((one) => ready(one) !== undefined))
    if (flow === undefined) throw new Error('the chosen events are not closed under their past')
    const index = ready(flow) as number
    queues.get(flow)?.shift()
    make(flow, index)
  }
  if (last !== undefined) make((trace.events[last] as Event).step.flow, last)
  return { order, preemptions }
}

function isVictim(trace: Trace, index: number | undefined): boolean {
  return index !== undefined && trace.events[index]?.step.choice.action === 'victim'
}

/** Whether a flow had anything left to do and did not wait for a lock. */
function canGoOn(trace: Trace, flow: number, done: ReadonlySet<number>): boolean {
  const next = trace.events.find(({ index, step }) => step.flow === flow && !done.has(index))
  return next !== undefined && (next.enabledBy === -1 || done.has(next.enabledBy))
}

/** Whether no flow made a step between two steps of another. */
export function isSerial(run: Run): boolean {
  const ended = new Set<number>()
  let current: number | undefined
  for (const { flow } of run.steps) {
    if (flow === current) continue
    if (ended.has(flow)) return false
    if (current !== undefined) ended.add(current)
    current = flow
  }
  return true
}
