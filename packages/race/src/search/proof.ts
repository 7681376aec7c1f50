/** How a fault becomes a race: it is made simpler, replayed, and held against serial orders once more. */
import type { Failure, Run, Trouble } from '../core/model.ts'
import type { Comparison } from './compare/comparison.ts'
import type { Frontier } from './classes/frontier.ts'
import { type Fault, isByRule, type Judge } from './judge.ts'
import { isSerial, preemptionsOf } from './linear.ts'
import { Follow, planOf } from './policy.ts'
import type { SerialOracle } from './serial-oracle.ts'
import { isSimpler, shrink } from './shrink.ts'
import { systematic } from './classes/systematic.ts'
import type { Tally } from './tally.ts'
import { hashOf, tokenOf } from './token.ts'

/** Runs to look for a failure with fewer preemptions than the one found. */
const EXTRA = 20
const REPLAYS = 5
/** Runs to see whether what may be an accident is one. */
const AGAIN = 3
/** Serial runs to see whether chance has made a failure. */
const MOST_SERIAL = 8

/** A race, or why what looked like one is none. */
export interface Proven {
  readonly failure?: Failure
  readonly trouble?: Trouble
}

interface Parts {
  readonly tally: Tally
  readonly frontier: Frontier
  readonly comparison: Comparison
  readonly oracle: SerialOracle
  readonly judge: Judge
}

export class Proof {
  readonly #tally: Tally
  readonly #frontier: Frontier
  readonly #comparison: Comparison
  readonly #oracle: SerialOracle
  readonly #judge: Judge
  /** Flows that ran one after the other ended in the way that was taken for a race. */
  #serialToo = false

  constructor({ tally, frontier, comparison, oracle, judge }: Parts) {
    this.#tally = tally
    this.#frontier = frontier
    this.#comparison = comparison
    this.#oracle = oracle
    this.#judge = judge
  }

  /** What seems wrong is judged again when more is known about chance, from the serial orders, run once more. */
  async believed(run: Run): Promise<Fault | undefined> {
    const found = await this.#faultOf(run)
    if (found === undefined || isByRule(found)) return found
    await this.#oracle.relearn()
    const fault = await this.#judge.fault(run)
    if (fault?.mayBeAccident !== true) return fault
    return (await this.#comesAgain(fault)) && (await this.#stands(fault)) ? fault : undefined
  }

  /** How long a flow waits decides whether two looks at the clock are the same: what is not so each time is that. */
  async #comesAgain({ run, key }: Fault): Promise<boolean> {
    for (let again = 0; again < AGAIN; again++) {
      const once = await this.#tally.run(new Follow(planOf(run)).decide, 'learn')
      if ((await this.#judge.fault(once))?.key !== key) return false
    }
    return true
  }

  /** What is wrong with a run. If words of it may have been drawn, it is run again to find that out. */
  async #faultOf(run: Run): Promise<Fault | undefined> {
    const found = await this.#judge.fault(run)
    if (found === undefined || isByRule(found) || !this.#comparison.isDoubtful(run)) return found
    const again = await this.#tally.run(new Follow(planOf(run)).decide, 'learn')
    if (again.trouble !== undefined || hashOf(again) !== hashOf(run)) return found
    this.#comparison.learnDrawn(run, again)
    return await this.#judge.fault(run)
  }

  /** The same failure with fewer preemptions, if there is one, and without needless turns. */
  async simplest(found: Fault): Promise<Fault> {
    let best = found
    const better = (run: Run): void => {
      best = { ...best, run }
    }
    const limit = { runs: EXTRA }
    const stop = (): boolean =>
      limit.runs-- <= 0 || (this.#frontier.bound ?? Infinity) >= preemptionsOf(best.run)
    const same = async (run: Run): Promise<boolean> => {
      if ((await this.#faultOf(run))?.key !== found.key) return false
      this.#serialToo ||= isSerial(run)
      return !isSerial(run)
    }
    if (found.kind !== 'crash')
      for await (const { trace } of systematic(this.#tally, this.#frontier, stop, 'shrink'))
        if (isSimpler(trace.run, best.run) && (await same(trace.run))) better(trace.run)
    better(await shrink(this.#tally, best.run, (run) => this.#frontier.trace(run), same))
    return (await this.#faultOf(best.run)) ?? best
  }

  /** A race is told if its schedule shows it again. */
  async of(fault: Fault): Promise<Proven> {
    const failure = await this.#failure(fault)
    const [again, replays] = failure.reproduced
    if (this.#serialToo) {
      const why = usesSeveral(fault.run)
        ? 'the order in which a flow uses connections of its own decides it, and only one such order was known.'
        : 'something that the explorer does not see decides it. A client that a flow does not get from its context is not seen: let every statement of a flow go through cx.pool or cx.url.'
      const message = `In one run ${fault.message}. Flows that ran one after the other ended so too: ${why}`
      return { trouble: { kind: 'not-reproduced', message } }
    }
    if (again > (fault.mayBeAccident === true ? replays - 1 : replays / 2)) {
      if (await this.#stands(fault)) return { failure }
      const message = `In one run ${fault.message}. When the serial orders were run more often, they differed there too: chance decides it.`
      return { trouble: { kind: 'not-reproduced', message } }
    }
    const message = `In one run ${fault.message}. When its schedule was replayed, that happened again ${again} of ${replays} times: something that no schedule controls decides it.`
    return { trouble: { kind: 'not-reproduced', message } }
  }

  /** Whether it is one still, when the serial orders have been run so often that a coin would have shown both sides. */
  async #stands(fault: Fault): Promise<boolean> {
    if (isByRule(fault)) return true
    for (let runs = 0; runs + this.#oracle.known <= MOST_SERIAL; runs += this.#oracle.known) {
      await this.#oracle.relearn()
      if ((await this.#judge.fault(fault.run)) === undefined) return false
    }
    return true
  }

  async #failure(fault: Fault): Promise<Failure> {
    const { kind, message, run } = fault
    const plan = planOf(run)
    let reproduced = 0
    let shown = run
    for (let replay = 0; replay < REPLAYS; replay++) {
      // To look for the lines costs: the first that fails again is shown.
      const places = reproduced === 0
      const again = await this.#tally.run(new Follow(plan).decide, 'replay', { places })
      if (again.trouble === undefined) this.#comparison.learnDrawn(run, again)
      if ((await this.#judge.fault(again))?.key !== fault.key) continue
      if (reproduced === 0) shown = again
      reproduced++
    }
    const orders = this.#oracle.complete
    const runs = this.#comparison.shown(
      shown,
      orders.map((one) => one.run),
    )
    return {
      kind,
      message,
      run: runs.run,
      serial: orders.map(({ order }, place) => ({ order, run: runs.serial[place] as Run })),
      ignored: this.#comparison.ignored,
      token: tokenOf(run),
      reproduced: [reproduced, REPLAYS],
    }
  }
}

/** Whether a flow has sent through more than one connection. */
function usesSeveral({ steps }: Run): boolean {
  return steps.some(({ lane }) => lane > 0)
}
