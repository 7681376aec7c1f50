/**
 * Judges runs by what serial runs give. A run is right if it ended as some serial order of its flows
 * did: the same tables, the same answers. A flow that refused, and left nothing behind, may be missing
 * from that order: to refuse is safe. A flow that crashed may be in it or missing, but not by halves.
 */
import type { FlowOutcome, Progress, Run } from '../core/model.ts'
import type { Comparison } from './compare/comparison.ts'
import { isSerial, permutations } from './linear.ts'
import { inOrder } from './policy.ts'
import type { Random } from './random.ts'
import type { Tally } from './tally.ts'

export interface SerialRun {
  readonly order: readonly number[]
  readonly run: Run
}

/** What is as in no serial order; `moments`: only which of them are the same. */
export type What = 'tables' | 'answers' | 'errors' | 'moments'

/** Why a run is wrong, or which flows of it were refused. */
export type Judgement =
  | {
      readonly right: true
      readonly refused: readonly number[]
      /** Why it may be wrong all the same, which cannot be told. */
      readonly doubt?: string
    }
  | { readonly right: false; readonly what: What }
  /** It ended as in none of the serial orders that were run, and there are too many to run them all. */
  | { readonly right: undefined }

/** More flows than this have more orders than anybody waits for: of those only the likely ones are run. */
const MOST_FLOWS = 5

export class SerialOracle {
  readonly #tally: Tally
  readonly #comparison: Comparison
  readonly #runs = new Map<
    string,
    { readonly order: readonly number[]; readonly run: Promise<Run> }
  >()
  readonly #complete: SerialRun[] = []
  /** A run could not be judged, so that no proof is to be had any more: no orders are run for others. */
  #isPartial = false

  constructor(tally: Tally, comparison: Comparison) {
    this.#tally = tally
    this.#comparison = comparison
  }

  /** Serial runs of all flows, as far as they were made. */
  get complete(): readonly SerialRun[] {
    return this.#complete
  }

  /** The run of some flows one after another, made when it is first asked for. */
  run(order: readonly number[]): Promise<Run> {
    const key = order.join()
    const known = this.#runs.get(key)
    if (known !== undefined) return known.run
    const run = this.#make(order)
    this.#runs.set(key, { order, run })
    return run
  }

  /** Twice, to learn what is chance. The order itself is no chance: each flow begins when the one before has ended. */
  async #make(order: readonly number[]): Promise<Run> {
    const run = await this.#play(order, 'serial')
    if (run.trouble === undefined) await this.#learn(order, run)
    if (order.length === this.#tally.runner.flows.length) this.#complete.push({ order, run })
    return run
  }

  async #play(order: readonly number[], phase: Progress['phase']): Promise<Run> {
    const run = await this.#tally.run(inOrder(order), phase, { only: order, serial: true })
    if (run.trouble !== undefined || isSerial(run)) return run
    const name = this.#tally.runner.flows[run.steps.at(-1)?.flow ?? 0]
    const message = `Statements of ${name} came after it had ended, among those of others: something in it is not awaited. Await it, so that the flow ends when its work does.`
    return { ...run, trouble: { kind: 'outlives-its-end', message } }
  }

  /** Runs the order once more and learns from the difference. */
  async #learn(order: readonly number[], run: Run): Promise<void> {
    const again = await this.#play(order, 'learn')
    if (again.trouble !== undefined) return
    this.#comparison.learn(run, again)
  }

  /** Orders that were run. */
  get known(): number {
    return this.#runs.size
  }

  /** Runs every order that is known once more: what has changed since, such as the second on a clock, is chance. */
  async relearn(): Promise<void> {
    for (const { order, run: made } of this.#runs.values()) {
      const run = await made
      if (run.trouble === undefined) await this.#learn(order, run)
    }
  }

  async judge(run: Run): Promise<Judgement> {
    const flows = [...run.outcomes.keys()]
    const kind = (flow: number): FlowOutcome['kind'] | undefined => run.outcomes[flow]?.kind
    const mayBeMissing = flows.filter(
      (flow) => kind(flow) !== 'returned' || isRefusal(run.outcomes[flow]),
    )
    let stateSeen = false
    let accident = false
    let moments = false
    let untried = false
    let doubtful: Judgement | undefined
    for (const missing of subsets(mayBeMissing)) {
      const present = flows.filter((flow) => !missing.includes(flow))
      untried ||= present.length > MOST_FLOWS
      // A crashed flow gave no answer that could be wrong.
      const heard = present.filter((flow) => kind(flow) !== 'crashed')
      for (const order of this.#orders(run, present)) {
        const serial = await this.run(order)
        if (serial.trouble !== undefined) continue
        const likeness = this.#comparison.compare(run, serial, heard)
        stateSeen ||= likeness.alike !== 'different' || this.#comparison.sameTables(run, serial)
        if (likeness.alike === 'different') {
          moments ||= likeness.moments === true
          continue
        }
        const refused = missing.filter((flow) => kind(flow) !== 'crashed')
        if (!refused.every((flow) => isRefusal(run.outcomes[flow]))) accident = true
        else if (likeness.alike === 'same') return { right: true, refused }
        else doubtful ??= { right: true, refused, doubt: likeness.why }
      }
    }
    if (doubtful) return doubtful
    if (untried) {
      this.#isPartial = true
      return { right: undefined }
    }
    if (accident) return { right: false, what: 'errors' }
    return { right: false, what: moments ? 'moments' : stateSeen ? 'answers' : 'tables' }
  }

  /** All orders, those that need no run first; of many flows those in which they ended and began, and what is known. */
  #orders(run: Run, flows: readonly number[]): readonly (readonly number[])[] {
    if (flows.length > MOST_FLOWS) {
      const known = this.#complete.map(({ order }) => order.filter((flow) => flows.includes(flow)))
      const place = (find: 'findIndex' | 'findLastIndex') => (flow: number) =>
        run.steps[find]((step) => step.flow === flow)
      const by = (placed: (flow: number) => number): number[] =>
        flows.toSorted((one, other) => placed(one) - placed(other))
      const likely = [by(place('findLastIndex')), by(place('findIndex'))]
      return this.#isPartial ? known : [...likely, ...known]
    }
    const isKnown = (order: number[]): number => (this.#runs.has(order.join()) ? 0 : 1)
    return permutations(flows).sort((one, other) => isKnown(one) - isKnown(other))
  }
}

/** Whether it said no, and did not go wrong. */
function isRefusal(outcome: FlowOutcome | undefined): boolean {
  if (outcome?.kind === 'returned') return outcome.said === 'refused'
  return outcome?.kind === 'threw' && outcome.said !== 'failed'
}

/** Small ones first: what needs the least excuse. */
function subsets(items: readonly number[]): number[][] {
  const all = items.reduce<number[][]>(
    (found, item) => [...found, ...found.map((subset) => [...subset, item])],
    [[]],
  )
  return all.sort((one, other) => one.length - other.length)
}

/** Orders that are run at once; the others when a result is not among these. */
const MOST_ORDERS = 12

/** The orders to begin with: all of a few, of like flows only one, some of many. */
export function serialOrders(
  flows: number,
  symmetric: readonly (readonly number[])[],
  random: Random,
): number[][] {
  const all = [...Array(flows).keys()]
  const few =
    flows > MOST_FLOWS ? [] : permutations(all).filter((order) => isFirst(order, symmetric))
  if (few.length > 0 && few.length <= MOST_ORDERS) return few
  const orders = new Map<string, number[]>()
  for (const order of [all, all.toReversed()]) orders.set(order.join(), order)
  while (orders.size < MOST_ORDERS) {
    const order = random.shuffle(all)
    orders.set(order.join(), order)
  }
  return [...orders.values()]
}

/** Of the orders that differ only in which of like flows is which, the one to run. */
function isFirst(order: readonly number[], symmetric: readonly (readonly number[])[]): boolean {
  return symmetric.every((group) => {
    const places = group.map((flow) => order.indexOf(flow))
    return places.every((place, index) => index === 0 || place > (places[index - 1] as number))
  })
}
