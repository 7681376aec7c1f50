/** What is wrong with a run, if anything is; what is only worth a note is noted. */
import type { Failure, FlowOutcome, Run } from '../core/model.ts'
import type { Comparison } from './compare/comparison.ts'
import type { SerialOracle, What } from './serial-oracle.ts'
import type { Tally } from './tally.ts'

export interface Fault {
  readonly kind: Failure['kind']
  readonly message: string
  /** Equal for failures that a person would call the same. */
  readonly key: string
  readonly run: Run
  /** An accident may have made it: it has to come again every time. */
  readonly mayBeAccident?: boolean
}

/** By the rule of an invariant, or by a deadlock: no other run has a part in it. */
export function isByRule({ kind, run }: Fault): boolean {
  return run.violation !== undefined || kind === 'deadlock'
}

export interface JudgeOptions {
  readonly oracle: boolean
  readonly deadlocks?: 'report' | 'fail'
}

export class Judge {
  readonly #tally: Tally
  readonly #oracle: SerialOracle
  readonly #comparison: Comparison
  readonly #options: JudgeOptions

  constructor(tally: Tally, oracle: SerialOracle, comparison: Comparison, options: JudgeOptions) {
    this.#tally = tally
    this.#oracle = oracle
    this.#comparison = comparison
    this.#options = options
  }

  /** Nothing is said about a run that ended in trouble. */
  async fault(run: Run): Promise<Fault | undefined> {
    if (run.trouble !== undefined) return undefined
    const crashed = run.outcomes.some(({ kind }) => kind === 'crashed')
    const fault = (kind: Failure['kind'], message: string, key: string): Fault => ({
      kind: crashed ? 'crash' : kind,
      message: crashed ? `${this.#crash(run)}: ${message}` : message,
      key: `${crashed ? 'crash' : kind} ${key}`,
      run,
    })
    if (run.violation !== undefined)
      return fault('invariant', run.violation, run.violation.replace(/\d+/g, '#'))
    if (run.deadlocks > 0) {
      const message = 'flows waited for each other in a circle, and PostgreSQL ended one of them'
      if (this.#options.deadlocks === 'fail') return fault('deadlock', message, '')
      this.#tally.note({
        kind: 'deadlock',
        message: `In some orders ${message}. What it had done was undone; it is safe if it is tried again.`,
      })
    }
    if (!this.#options.oracle) return undefined
    const judgement = await this.#oracle.judge(run)
    if (judgement.right === false) {
      const what = judgement.what
      const mayBeAccident = what === 'moments'
      return { ...fault('not-serial', this.#notSerial(run, what), what), mayBeAccident }
    }
    if (judgement.right === undefined) {
      this.#noteUnjudged()
      return undefined
    }
    this.#noteRefused(run, judgement.refused)
    if (judgement.doubt !== undefined) this.#tally.doubt(judgement.doubt)
    return undefined
  }

  #name(flow: number): string {
    return this.#tally.runner.flows[flow] ?? `flow ${flow}`
  }

  #notSerial(run: Run, what: What): string {
    const orders = this.#oracle.complete
      .map(({ order }) => order.map((flow) => this.#name(flow)).join(' → '))
      .join(', ')
    if (what === 'tables') return `the tables ended as after no serial order (${orders})`
    if (what === 'moments')
      return `moments that are the same after every serial order (${orders}) are not the same`
    if (what === 'errors') {
      const thrown = run.outcomes.flatMap((outcome, flow) =>
        outcome.kind === 'threw' ? `${this.#name(flow)} ${said(outcome)}` : [],
      )
      return `${thrown.join(', ')}: an error that no serial order gives (${orders})`
    }
    const answers = run.outcomes.map((outcome, flow) => `${this.#name(flow)} ${said(outcome)}`)
    return `the flows were answered as in no serial order (${orders}): ${answers.join(', ')}`
  }

  #crash(run: Run): string {
    const step = run.steps.find(({ choice }) =>
      ['crash', 'lose-answer'].includes(choice.action),
    ) as Run['steps'][number]
    // The commit of a statement without BEGIN is a step, and no statement.
    const place = run.steps.filter(
      ({ flow, index, half }) => flow === step.flow && index <= step.index && half !== 'commit',
    ).length
    const statement =
      step.half === 'commit' ? `the commit of its statement ${place}` : `its statement ${place}`
    const when =
      step.choice.action === 'crash'
        ? `before ${statement}`
        : `after ${statement}, before the answer arrived`
    return `${this.#name(step.flow)} crashed ${when} (${short(step.statements.join('; '))})`
  }

  #noteUnjudged(): void {
    this.#tally.controlled = false
    this.#tally.note({
      kind: 'unjudged',
      message: `In some orders the flows ended as in none of the serial orders that were run. ${this.#tally.runner.flows.length} flows have too many to run them all, so that is no proof. Explore those that meet by themselves, five at most.`,
    })
  }

  /** What a flow says in some serial order too is told with what is not so there: the ends of the others beside it. */
  #noteRefused(run: Run, refused: readonly number[]): void {
    const end = (flow: number): string => `${this.#name(flow)} ${said(run.outcomes[flow])}`
    const isSerial = (flows: readonly number[]): boolean =>
      this.#oracle.complete.some((one) =>
        flows.every((flow) => this.#comparison.sameOutcome(run, one.run, flow)),
      )
    const note = (what: string, callers = 'caller expects'): void =>
      this.#tally.note({
        kind: 'refused',
        message: `In some orders ${what}, and left nothing behind. That is safe, if the ${callers} it.`,
      })
    const unheard = refused.filter((flow) => !isSerial([flow]))
    for (const flow of unheard) note(`${end(flow)}, which it does in no serial order`)
    if (unheard.length === refused.length) return
    const all = refused.map(end).join(' and ')
    const together = refused.length === 2 ? 'both' : 'all of it'
    if (refused.length > 1 && !isSerial(refused))
      note(`${all}, and no serial order gives ${together}`, 'callers expect')
    else note(`${all} beside ends of the others that no serial order has beside it`)
  }
}

function said(outcome: FlowOutcome | undefined): string {
  if (outcome?.kind === 'returned') return `returned ${short(outcome.value)}`
  if (outcome?.kind !== 'threw') return outcome?.kind ?? 'did not end'
  return `threw ${outcome.sqlstate ?? outcome.name}: ${short(outcome.message)}`
}

/** One line of text, for people. */
export function short(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}
