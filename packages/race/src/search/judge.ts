/** What is wrong with a run, if anything is; what is only worth a note is noted. */
import type { Failure, FlowOutcome, Run } from '../core/model.ts'
import type { Comparison } from './comparison.ts'
import type { SerialOracle } from './serial-oracle.ts'
import type { Tally } from './tally.ts'

export interface Fault {
  readonly kind: Failure['kind']
  readonly message: string
  /** Equal for failures that a person would call the same. */
  readonly key: string
  readonly run: Run
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
    if (!this.#options.oracle || this.#comparison.blind) return undefined
    const judgement = await this.#oracle.judge(run)
    if (judgement.right === false) {
      const what = judgement.what
      return fault('not-serial', this.#notSerial(run, what), what)
    }
    if (judgement.right === undefined) this.#noteUnjudged()
    else for (const flow of judgement.refused) this.#noteRefused(run, flow)
    return undefined
  }

  #name(flow: number): string {
    return this.#tally.runner.flows[flow] ?? `flow ${flow}`
  }

  #notSerial(run: Run, what: 'tables' | 'answers' | 'errors'): string {
    const orders = this.#oracle.complete
      .map(({ order }) => order.map((flow) => this.#name(flow)).join(' → '))
      .join(', ')
    if (what === 'tables') return `the tables ended as after no serial order (${orders})`
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
    const place = run.steps.filter(
      ({ flow, index }) => flow === step.flow && index <= step.index,
    ).length
    const when =
      step.choice.action === 'crash'
        ? `before its statement ${place}`
        : `after its statement ${place}, before the answer arrived`
    return `${this.#name(step.flow)} crashed ${when} (${short(step.statements.join('; '))})`
  }

  #noteUnjudged(): void {
    this.#tally.controlled = false
    this.#tally.note({
      kind: 'unjudged',
      message: `In some orders the flows ended as in none of the serial orders that were run. ${this.#tally.runner.flows.length} flows have too many to run them all, so that is no proof. Explore those that meet by themselves, five at most.`,
    })
  }

  #noteRefused(run: Run, flow: number): void {
    this.#tally.note({
      kind: 'refused',
      message: `In some orders ${this.#name(flow)} ${said(run.outcomes[flow])}, which it does in no serial order, and left nothing behind. That is safe, if the caller expects it.`,
    })
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
