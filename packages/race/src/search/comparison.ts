/**
 * When two runs ended alike. Two runs of one class must; what differs between them all the same is
 * chance (an id made by the program, the time), and is left out of every comparison from then on.
 */
import type { FinalTable, Run } from '../core/model.ts'

export class Comparison {
  readonly #columns = new Set<string>()
  readonly #values = new Set<number>()
  /** Two like runs differ in more than values: nothing can be said about final states. */
  blind = false

  /** Columns that are left out. */
  get ignored(): readonly string[] {
    return [...this.#columns]
  }

  /** What differed, for people. */
  said(flows: readonly string[]): string {
    if (this.blind)
      return 'Two runs of the same schedule ended with different rows, so final states are not compared.'
    const left = [
      ...this.#columns,
      ...[...this.#values].map((flow) => `what ${flows[flow]} returned`),
    ]
    return `Two runs of the same schedule differed in ${left.join(', ')}; that is not compared.`
  }

  /** Learns from two runs of one class; whether they differed in anything new. */
  learn(one: Run, other: Run): boolean {
    let differed = false
    one.outcomes.forEach((_, flow) => {
      if (this.sameOutcome(one, other, flow)) return
      this.#values.add(flow)
      differed = true
    })
    if (this.state(one) === this.state(other)) return differed
    for (const table of one.tables)
      for (const column of differentColumns(
        table,
        other.tables.find(({ name }) => name === table.name),
      ))
        this.#columns.add(`${table.name}.${column}`)
    this.blind ||= this.state(one) !== this.state(other)
    return true
  }

  sameState(one: Run, other: Run): boolean {
    return this.blind || this.state(one) === this.state(other)
  }

  sameOutcome(one: Run, other: Run, flow: number): boolean {
    return this.#outcome(one, flow) === this.#outcome(other, flow)
  }

  state(run: Run): string {
    return this.#columns.size === 0 ? run.state : JSON.stringify(run.tables.map(this.#masked))
  }

  #outcome(run: Run, flow: number): string {
    const outcome = run.outcomes[flow]
    if (outcome?.kind === 'threw' && outcome.sqlstate !== undefined)
      return `threw ${outcome.sqlstate}`
    if (!this.#values.has(flow)) return outcomeTexts(run)[flow] ?? ''
    return outcome?.kind === 'threw' ? `threw ${outcome.name}` : (outcome?.kind ?? '')
  }

  readonly #masked = (table: FinalTable): unknown => {
    const kept = table.columns.map((column) => !this.#columns.has(`${table.name}.${column}`))
    const rows = table.rows.map((row) => JSON.stringify(row.filter((_, place) => kept[place])))
    return [table.name, rows.sort()]
  }
}

function differentColumns(one: FinalTable, other: FinalTable | undefined): string[] {
  const values = (table: FinalTable | undefined, column: string): string => {
    const place = table?.columns.indexOf(column) ?? -1
    return (table?.rows ?? [])
      .map((row) => JSON.stringify(row[place] ?? null))
      .sort()
      .join()
  }
  return one.columns.filter((column) => values(one, column) !== values(other, column))
}

const texts = new WeakMap<Run, readonly string[]>()

/** How each flow ended, with values of chance replaced: a digest is the state and then these. */
function outcomeTexts(run: Run): readonly string[] {
  let known = texts.get(run)
  if (known === undefined) {
    known = (JSON.parse(run.digest) as string[]).slice(1)
    texts.set(run, known)
  }
  return known
}
