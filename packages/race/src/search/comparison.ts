/**
 * When two runs ended alike. Two runs of one serial order must; what differs between them all the same is
 * chance (an id made by the program, the time) and is left out from then on: by path, and there only the values
 * that nobody can foretell. A status beside a random token, or a null in a column of random ones, is compared.
 */
import type { FinalTable, FlowOutcome, Run } from '../core/model.ts'
import { readJson } from '../core/read-json.ts'
import { Chance, type Leaves } from './chance.ts'

export class Comparison {
  readonly #rows = new Chance()
  readonly #answers = new Chance()
  /** Flows that were answered otherwise, and not by chance, in two like runs: what they say is not compared. */
  readonly #unsteady = new Set<number>()
  /** Two like runs differ in more than values: nothing can be said about final states. */
  blind = false

  /** Like runs were alike, apart from values of chance. */
  get steady(): boolean {
    return !this.blind && this.#unsteady.size === 0
  }

  /** Columns in which values are left out. */
  get ignored(): readonly string[] {
    return this.#rows.paths
  }

  /** What differed, for people. */
  said(flows: readonly string[]): string | undefined {
    if (this.blind)
      return 'Two runs of the same schedule ended with different rows, so final states are not compared.'
    const answers = this.#answers.paths.map((path) => {
      const [flow = '', ...keys] = path.split(' ')
      const key = keys.join(' ')
      return `${key === '' ? 'what' : `${key} of what`} ${flows[Number(flow)]} returned`
    })
    const unsteady = [...this.#unsteady].map((flow) => `how ${flows[flow]} ended`)
    const left = [...this.#rows.paths, ...answers, ...unsteady]
    if (left.length === 0) return undefined
    return `Two runs of the same schedule differed in ${left.join(', ')}; values that were there only once are not compared.`
  }

  /** What a serial run showed: values that come again in every run of its order are not of chance. */
  know(run: Run): void {
    for (const table of run.tables) this.#rows.know(cellsOf(table))
    run.outcomes.forEach((_, flow) => this.#answers.know(leavesOf(answerOf(run, flow), `${flow}`)))
  }

  /** Learns from two runs of one class. Where they differ in what is hardly chance, the places. */
  learn(one: Run, other: Run): readonly string[] {
    const odd: string[] = []
    one.outcomes.forEach((_, flow) => {
      if (this.sameOutcome(one, other, flow)) return
      const [left, right] = [answerOf(one, flow), answerOf(other, flow)]
      odd.push(...this.#answers.differ(leavesOf(left, `${flow}`), leavesOf(right, `${flow}`)))
      if (!this.sameOutcome(one, other, flow)) this.#unsteady.add(flow)
    })
    if (this.state(one) === this.state(other)) return odd
    for (const table of one.tables) {
      const same = other.tables.find(({ name }) => name === table.name)
      if (same) odd.push(...this.#rows.differ(cellsOf(table), cellsOf(same)))
    }
    this.blind ||= this.state(one) !== this.state(other)
    return odd
  }

  sameState(one: Run, other: Run): boolean {
    return this.blind || this.state(one) === this.state(other)
  }

  sameOutcome(one: Run, other: Run, flow: number): boolean {
    return this.#outcome(one, flow) === this.#outcome(other, flow)
  }

  state(run: Run): string {
    return this.#rows.paths.length === 0 ? run.state : JSON.stringify(run.tables.map(this.#masked))
  }

  /** The run with words in place of what chance has put into its answers, for people. */
  shown(run: Run): Run {
    const outcomes = run.outcomes.map((outcome, flow): FlowOutcome => {
      if (outcome.kind !== 'returned') return outcome
      const masked = this.#maskedAnswer(answerOf(run, flow), `${flow}`)
      const value = readValue(outcome.value)
      const shown = JSON.stringify(withWords(value, masked))
      return shown === JSON.stringify(value) ? outcome : { ...outcome, value: shown }
    })
    return { ...run, outcomes }
  }

  #outcome(run: Run, flow: number): string {
    if (this.#unsteady.has(flow)) return ''
    const outcome = run.outcomes[flow]
    if (outcome?.kind === 'threw' && outcome.sqlstate !== undefined)
      return `threw ${outcome.sqlstate}`
    const kind = outcome?.kind === 'threw' ? `threw ${outcome.name}` : (outcome?.kind ?? '')
    return `${kind} ${JSON.stringify(this.#maskedAnswer(answerOf(run, flow), `${flow}`))}`
  }

  #maskedAnswer(value: unknown, path: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#maskedAnswer(item, path))
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(
        Object.entries(value)
          .toSorted(([one], [other]) => (one < other ? -1 : 1))
          .map(([key, item]) => [key, this.#maskedAnswer(item, `${path} ${key}`)]),
      )
    return this.#answers.masked(path, value)
  }

  readonly #masked = (table: FinalTable): unknown => {
    const rows = table.rows.map((row) =>
      JSON.stringify(
        row.map((value, place) =>
          this.#rows.masked(`${table.name}.${table.columns[place]}`, value),
        ),
      ),
    )
    return [table.name, table.columns, rows.sort()]
  }
}

function cellsOf(table: FinalTable): Leaves {
  return table.rows.flatMap((row) =>
    row.map((value, place) => [`${table.name}.${table.columns[place]}`, value] as const),
  )
}

/** The places of an answer. Those of a list are one: how many there are is compared, and not where. */
function leavesOf(value: unknown, path: string): Leaves {
  if (Array.isArray(value)) return value.flatMap((item) => leavesOf(item, path))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, item]) => leavesOf(item, `${path} ${key}`))
  return [[path, value]]
}

const answers = new WeakMap<Run, readonly unknown[]>()

/** What a flow was answered, with values that are surely of chance replaced: the digest has the state and then these. */
function answerOf(run: Run, flow: number): unknown {
  let known = answers.get(run)
  if (known === undefined) {
    const texts = run.digest === '' ? [] : (JSON.parse(run.digest) as string[]).slice(1)
    known = run.outcomes.map((outcome, place) => readAnswer(outcome, texts[place] ?? ''))
    answers.set(run, known)
  }
  return known[flow]
}

/** A text that is no JSON stands for itself. */
function readValue(text: string): unknown {
  const value = readJson(text)
  return value === undefined ? text : value
}

/** The value with the words that stand for chance. */
function withWords(value: unknown, masked: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(masked))
    return value.map((item, at) => withWords(item, masked[at]))
  if (isRecord(value) && isRecord(masked))
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, withWords(item, masked[key])]),
    )
  return typeof masked === 'string' && masked.includes('‹') ? masked : value
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readAnswer(outcome: FlowOutcome, text: string): unknown {
  return outcome.kind === 'returned' ? readValue(text.slice('returned '.length)) : text
}
