/**
 * The search: serial orders first, then a few random ones, then one run of every class with the fewest
 * preemptions first, then random ones for what the budget does not reach, then crashes.
 */
import { orAsOne } from '../core/as-one.ts'
import { type Dependent, dependent as everyRule } from '../core/footprint.ts'
import type { Coverage, Failure, Progress, Report, Run, Runner, Trouble } from '../core/model.ts'
import { Comparison } from './compare/comparison.ts'
import { Consistency } from './consistency.ts'
import { crashPoints } from './crash.ts'
import { Frontier, type Learnt, renamingsOf } from './classes/frontier.ts'
import { futility } from './futility.ts'
import { interleavings, lengthsOf } from './interleavings.ts'
import { type Fault, Judge, short } from './judge.ts'
import { isSerial } from './linear.ts'
import { atRandom, byPriority, Follow, inOrder, inTurns } from './policy.ts'
import { Proof } from './proof.ts'
import { Random } from './random.ts'
import { SerialOracle, serialOrders } from './serial-oracle.ts'
import { systematic } from './classes/systematic.ts'
import { type Budget, Tally } from './tally.ts'
import { hashOf, readToken } from './token.ts'
import { Weave } from './classes/weave.ts'

export interface SearchOptions {
  readonly budget: Budget
  /** Compare final states and answers with those of serial runs. */
  readonly oracle: boolean
  /** Groups of flows that do the same. */
  readonly symmetric?: readonly (readonly number[])[]
  readonly crash?: boolean
  /** Whether a deadlock is a failure, or only told. */
  readonly deadlocks?: 'report' | 'fail'
  /** A token: that schedule first. */
  readonly replay?: string
  readonly seed?: number
  readonly onProgress?: (progress: Progress) => void
  readonly dependent?: Dependent
}

export type Findings = Pick<Report, 'verdict' | 'coverage' | 'failure' | 'trouble' | 'notes'>

/** Random runs before the systematic ones: most races show in the first. */
const BURST = 3
/** Of the budget, for the systematic search; the rest is for what it does not reach. */
const SYSTEMATIC = 0.75
/** So many runs may end in trouble before the search gives up. */
const MOST_TROUBLED = 3

export function search(runner: Runner, options: SearchOptions): Promise<Findings> {
  return new Search(runner, options).run()
}

class Search {
  readonly #options: SearchOptions
  readonly #flows: readonly string[]
  readonly #tally: Tally
  readonly #frontier: Frontier
  readonly #comparison: Comparison
  readonly #consistency = new Consistency()
  readonly #oracle: SerialOracle
  readonly #judge: Judge
  readonly #proof: Proof
  readonly #random: Random
  readonly #weave: Weave
  readonly #runs: Run[] = []
  #deterministic = true
  #futile: Exclude<ReturnType<typeof futility>, { readonly trouble: Trouble }>
  #crashPoints = 0
  #crashesLeft = false
  #missBound: Coverage['missBound']

  constructor(runner: Runner, options: SearchOptions) {
    this.#options = options
    this.#flows = runner.flows
    this.#tally = new Tally(runner, options.budget, options.onProgress)
    const dependent = options.dependent ?? everyRule
    this.#weave = new Weave(dependent)
    this.#frontier = new Frontier(
      dependent,
      renamingsOf(options.symmetric ?? [], runner.flows.length),
    )
    this.#comparison = new Comparison(runner.flows)
    this.#oracle = new SerialOracle(this.#tally, this.#comparison)
    this.#judge = new Judge(this.#tally, this.#oracle, this.#comparison, options)
    this.#proof = new Proof({
      tally: this.#tally,
      frontier: this.#frontier,
      comparison: this.#comparison,
      oracle: this.#oracle,
      judge: this.#judge,
    })
    this.#random = new Random(options.seed ?? 1)
  }

  async run(): Promise<Findings> {
    const trouble = await this.#serial()
    if (trouble !== undefined) return this.#findings(undefined, trouble)
    const replayed = await this.#replay()
    if (replayed !== undefined) return await this.#told(replayed)
    const found =
      (await this.#burst()) ??
      (await this.#systematic()) ??
      (await this.#sample()) ??
      (await this.#interleave()) ??
      (await this.#crashes())
    if (found === undefined) return this.#findings(undefined, this.#tally.trouble)
    return await this.#told(await this.#proof.simplest(found))
  }

  async #told(fault: Fault): Promise<Findings> {
    const { failure, trouble } = await this.#proof.of(fault)
    return this.#findings(failure, trouble)
  }

  /** Orders of whole flows. One before that counts for nothing: caches that the first use fills are full from then on. */
  async #serial(): Promise<Trouble | undefined> {
    const orders = serialOrders(this.#flows.length, this.#options.symmetric ?? [], this.#random)
    const [first = []] = orders
    const { trouble } = await this.#tally.run(inOrder(first), 'learn', {
      only: first,
      serial: true,
    })
    // To wait for it once more tells nothing new.
    if (trouble && ['external-blocker', 'seed-failed'].includes(trouble.kind)) return trouble
    for (const order of orders) {
      const run = await this.#oracle.run(order)
      this.#runs.push(run)
      this.#weave.learn(run)
      if (run.trouble !== undefined) return run.trouble
      if (run.violation !== undefined) {
        const names = order.map((flow) => this.#flows[flow]).join(', ')
        const message = `Not a race: the invariant fails without any concurrency, in the order ${names}: ${run.violation}`
        return { kind: 'fails-serially', message }
      }
    }
    const futile = futility(this.#flows, this.#oracle.complete, this.#options.symmetric)
    if (futile !== undefined && 'trouble' in futile) return futile.trouble
    this.#futile = futile
    return undefined
  }

  async #replay(): Promise<Fault | undefined> {
    const { replay } = this.#options
    if (replay === undefined) return undefined
    const { choices, hash } = readToken(replay)
    const follow = new Follow(choices.map((choice) => ({ choice })))
    const run = await this.#tally.run(follow.decide, 'replay')
    if (run.trouble === undefined) {
      const fault = await this.#judge.fault(run)
      if (hashOf(run) === hash && fault !== undefined) return fault
    }
    const message =
      hashOf(run) === hash
        ? 'The schedule of the replay token no longer fails; searched instead.'
        : 'The replay token is of another test, or the code has changed since; searched instead.'
    this.#tally.note({ kind: 'stale-token', message })
    return undefined
  }

  async #burst(): Promise<Fault | undefined> {
    for (let index = 0; index < BURST && !this.#tally.spent(); index++) {
      const run = await this.#tally.run(atRandom(this.#random), 'random')
      const found = await this.#look(this.#frontier.learn(run))
      if (found !== undefined) return found
    }
    return undefined
  }

  async #systematic(): Promise<Fault | undefined> {
    const stop = (): boolean => this.#tally.spent(SYSTEMATIC) || this.#hopeless()
    for await (const visit of systematic(this.#tally, this.#frontier, stop)) {
      if (visit.divergence !== undefined) this.#contradicted(visit.divergence)
      const found = await this.#look(visit)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Random orders with a known chance of missing something, for what was not reached. */
  async #sample(): Promise<Fault | undefined> {
    if (this.#frontier.open === 0 || this.#hopeless()) return undefined
    const flows = this.#flows.length
    const steps = this.#tally.longest
    let missed = 1
    for (let index = 0; !this.#tally.spent(); index++) {
      // Two of three for bugs that need two orderings, one for those that need three.
      const depth = index % 3 === 2 ? 3 : 2
      const run = await this.#tally.run(byPriority(this.#random, flows, steps, depth), 'random')
      missed *= 1 - 1 / (flows * steps ** (depth - 1))
      const found = await this.#look(this.#frontier.learn(run))
      if (found !== undefined) return found
    }
    this.#missBound = { depth: 2, atMost: missed }
    return undefined
  }

  /**
   * Where every class has an order of whole flows, they may have been run only so. Once they take turns, to see that
   * they can be under way together at all.
   */
  async #interleave(): Promise<Fault | undefined> {
    for (const first of this.#flows.keys()) {
      if (this.#tally.overlapped || this.#hopeless()) return undefined
      const run = await this.#tally.run(inTurns(first), 'search')
      const found = await this.#look(this.#frontier.learn(run))
      if (found !== undefined) return found
    }
    return undefined
  }

  /** In the serial runs first, then in the racing ones as far as the budget goes. */
  async #crashes(): Promise<Fault | undefined> {
    if (this.#options.crash !== true || this.#hopeless()) return undefined
    const serial = this.#oracle.complete.map(({ run }) => run)
    const racing = this.#runs.filter((run) => !isSerial(run))
    const tried = new Set<string>()
    for (const run of [...serial, ...racing]) {
      const { events } = this.#frontier.trace(run)
      for (const { plan, index, action } of crashPoints(run)) {
        // The same steps in another order lead to the same crash.
        const before = events.slice(0, index).map(({ node }) => node)
        const key = `${before.sort((one, other) => one - other).join()} ${events[index]?.node} ${action}`
        if (tried.has(key)) continue
        tried.add(key)
        if (this.#tally.spent()) {
          this.#crashesLeft = serial.includes(run)
          return undefined
        }
        const crashed = await this.#tally.run(new Follow(plan).decide, 'search')
        this.#crashPoints++
        const found = await this.#proof.believed(crashed)
        if (found !== undefined) return found
      }
    }
    return undefined
  }

  /** Takes in what a run showed, and judges it. */
  async #look(learnt: Learnt): Promise<Fault | undefined> {
    this.#learn(learnt)
    const { run } = learnt.trace
    const found = await this.#proof.believed(run)
    if (found === undefined || !isSerial(run)) return found
    this.#contradicted(
      'flows that made their steps one after the other ended as in no serial order',
    )
    return undefined
  }

  #learn({ trace, known }: Learnt): void {
    this.#weave.learn(trace.run)
    const contradiction = this.#consistency.learn(trace, this.#flows)
    if (contradiction !== undefined) this.#contradicted(contradiction)
    if (known === undefined) this.#runs.push(trace.run)
    else {
      const [odd] = this.#comparison.learn(trace.run, known.run)
      if (odd !== undefined)
        this.#contradicted('two orders that should have been alike ended differently')
    }
    this.#tally.classes = this.#frontier.classes
    this.#tally.open = this.#frontier.open
  }

  #contradicted(message: string): void {
    this.#deterministic = false
    this.#tally.note({
      kind: 'nondeterminism',
      message: `The same schedule did not give the same steps: ${message}. Something depends on chance or time, so nothing is said about every order.`,
    })
  }

  /** Whether others could have acted inside of a step; says where. */
  #noteWoven(): boolean {
    const woven = this.#weave.woven()
    for (const { flow, text } of woven)
      this.#tally.note({
        kind: 'several-statements',
        message: `One step of ${this.#flows[flow]} runs several statements on the server: ${short(text)}. Others can act between them, and those orders were not run. Send them one by one, take a lock before that the others take too, or ${orAsOne}.`,
      })
    return woven.length > 0
  }

  #hopeless(): boolean {
    return this.#tally.troubled >= MOST_TROUBLED
  }

  #findings(failure?: Failure, trouble?: Trouble): Findings {
    const { schedules, overlapped, blockedEpisodes, deadlocks, milliseconds } = this.#tally
    for (const note of this.#comparison.notes) this.#tally.note(note)
    // What succeeded among others was explored.
    const futile = this.#futile?.about.some((flow) => this.#tally.accepted.has(flow)) === false
    if (this.#futile && futile) this.#tally.note(this.#futile.note)
    const woven = failure === undefined && this.#noteWoven()
    const { notes } = this.#tally
    const finished = failure === undefined && trouble === undefined && this.#frontier.open === 0
    const { controlled, decided } = this.#tally
    const exhaustive =
      finished && this.#deterministic && controlled && decided && !woven && this.#comparison.steady
    const lengths = this.#flows.flatMap((_, flow) => lengthsOf(this.#oracle.complete, flow))
    const bound =
      failure === undefined && !exhaustive ? this.#frontier.preemptionBound() : undefined
    const coverage: Coverage = {
      exhaustive,
      schedules,
      classes: this.#frontier.classes,
      interleavings: interleavings(lengths),
      overlapped,
      blockedEpisodes,
      deadlocks,
      crashPoints: this.#crashPoints,
      ...(bound === undefined || !this.#deterministic ? {} : { preemptionBound: bound }),
      ...(this.#missBound === undefined || !this.#tally.controlled
        ? {}
        : { missBound: this.#missBound }),
      milliseconds,
    }
    if (failure !== undefined) return { verdict: 'race', coverage, failure, notes }
    if (trouble !== undefined)
      return {
        verdict: ['nothing-sent', 'always-fails'].includes(trouble.kind)
          ? 'vacuous'
          : 'inconclusive',
        coverage,
        trouble,
        notes,
      }
    if (!overlapped)
      return {
        verdict: 'vacuous',
        coverage,
        notes: [...notes, ...(futile ? [] : this.#tally.onlyReads())],
      }
    return { verdict: exhaustive && !this.#crashesLeft ? 'race-free' : 'bounded', coverage, notes }
  }
}
