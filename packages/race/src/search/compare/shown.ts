/** Runs of a report: with words in place of what is drawn anew in every run, so that they can be laid side by side. */
import type { Fact, RowKey, Span } from '../../core/facts.ts'
import type { FinalTable, FlowOutcome, Run } from '../../core/model.ts'
import { isTag } from '../../core/tag.ts'
import { type Chance, leavesIn } from './chance.ts'
import { type Entry, type Leaf, type Node, prepare } from './prepared.ts'
import type { Time } from './text-parts.ts'

type Row = readonly (string | null)[]

/** `asKeys`: whether values at a place that may be keys are shown as such. */
export type AsKeys = (path: string) => boolean

export function shownRun(chance: Chance, run: Run, asKeys: AsKeys): Run {
  const { facts, ...rest } = run
  if (facts === undefined) return rest
  const { span, ends, tables } = prepare(run)
  const words = new Words(chance, span, asKeys)
  for (const end of ends) words.count(end)
  for (const { rows } of tables) for (const { cells } of rows) words.countRow(cells)
  const outcomes = run.outcomes.map((outcome, flow): FlowOutcome => {
    const end = ends[flow]
    if (outcome.kind !== 'returned' || end === undefined) return outcome
    const value = words.valueOf(end)
    return words.used ? { ...outcome, value: JSON.stringify(value) } : outcome
  })
  const shown = tables.map((table, place): FinalTable => {
    const rows = table.rows.map(({ cells }, at) => ({
      cells,
      facts: facts.tables[place]?.rows[at] ?? [],
    }))
    return tableOf(words, { ...table, rows })
  })
  return { ...rest, outcomes, tables: shown }
}

interface RawTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: readonly { readonly cells: readonly Node[]; readonly facts: readonly Fact[] }[]
}

/** A column that says nothing but "new" or "now" is of no interest to anybody. */
function tableOf(words: Words, { name, columns, rows }: RawTable): FinalTable {
  const bare = rows.map((row) => ({ ...row, text: JSON.stringify(cellsOf(words, row, false)) }))
  const sorted = bare.toSorted((one, other) => (one.text < other.text ? -1 : 1))
  const cells = sorted.map((row) => cellsOf(words, row, true))
  const kept = columns.flatMap((_, at) =>
    cells.length > 0 && cells.every((row) => /^‹(?:new|clock|chance)›$/.test(row[at] ?? ''))
      ? []
      : [at],
  )
  return {
    name,
    columns: kept.map((at) => columns[at] ?? ''),
    rows: cells.map((row) => kept.map((at) => row[at] ?? null)),
  }
}

function cellsOf(words: Words, { cells, facts }: RawTable['rows'][number], numbered: boolean): Row {
  return cells.map((cell, at) => {
    if (cell.kind === 'key') return words.keyOf(cell.key, numbered)
    const value = words.valueOf(cell, numbered)
    const fact = facts[at]
    if (!words.used) return typeof fact === 'string' ? fact : value === null ? null : text(value)
    return value === null ? null : text(value)
  })
}

function nameOf({ name }: Entry): string {
  return name.parts.map((part) => part.text).join('')
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

class Words {
  /** Whether there was one in the last value. */
  used = false
  readonly #chance: Chance
  readonly #span: Span
  readonly #asKeys: AsKeys
  /** In how many rows and answers a drawn value stands, and how many keys are shown alike. */
  readonly #counts = new Map<string, number>()
  readonly #alike = new Map<string, Set<string>>()
  readonly #numbers = new Map<string, number>()

  constructor(chance: Chance, span: Span, asKeys: AsKeys) {
    this.#chance = chance
    this.#span = span
    this.#asKeys = asKeys
  }

  count(node: Node): void {
    const found = new Set<string>()
    for (const { path, parts } of leavesIn(node)) {
      for (const part of parts) {
        const { kind, text: word } = this.#chance.asWord(path, part)
        if (kind === 'word' && this.#chance.isDrawn(word)) found.add(word)
      }
    }
    for (const word of found) this.#counts.set(word, (this.#counts.get(word) ?? 0) + 1)
  }

  countRow(cells: readonly Node[]): void {
    for (const cell of cells) {
      this.count(cell)
      if (cell.kind !== 'key') continue
      const { id, shown } = cell.key
      this.#alike.set(shown, (this.#alike.get(shown) ?? new Set()).add(id))
    }
  }

  /** Rows that refer to two rows alike are told apart by a number. */
  keyOf({ id, shown }: RowKey, numbered: boolean): string {
    const several = shown.startsWith('→') && (this.#alike.get(shown)?.size ?? 0) > 1
    return numbered && several ? `${shown} ${this.#numberOf(`→${shown}`, id)}` : shown
  }

  valueOf(node: Node, numbered = true): unknown {
    this.used = false
    return this.#value(node, numbered)
  }

  #value(node: Node, numbered: boolean): unknown {
    if (this.#chance.isUnclear(node.path)) return this.#word('‹chance›')
    if (node.kind === 'leaf') return this.#leaf(node, numbered)
    if (node.kind === 'key') return this.#word(node.key.shown)
    if (node.kind === 'perhaps') {
      const [key] = node.perhaps.keys
      if (key === undefined || !this.#asKeys(node.path)) return node.perhaps.literal
      return this.#word(key.shown)
    }
    if (node.kind === 'list') return node.items.map((item) => this.#value(item, numbered))
    if (node.kind === 'joined')
      return node.parts.map((part) => String(this.#value(part, numbered))).join('')
    const [only] = node.entries
    if (node.entries.length === 1 && only && isTag(nameOf(only)))
      return this.#value(only.value, numbered)
    return Object.fromEntries(
      node.entries.map(({ name, value }) => [
        String(this.#leaf(name, numbered)),
        this.#value(value, numbered),
      ]),
    )
  }

  #leaf({ path, type, parts }: Leaf, numbered: boolean): unknown {
    let plain = true
    const texts = parts.map((one) => {
      const motion = one.kind === 'time' ? this.#chance.motionAt(path, one) : undefined
      const part = this.#chance.asWord(path, one)
      const isDrawn = part.kind === 'word' && this.#chance.isDrawn(part.text)
      if (!isDrawn && !(one.kind === 'time' && motion?.withClock)) return part.text
      plain = false
      if (one.kind === 'time' && motion?.withClock) return this.#word(this.#time(one))
      const [before, behind] = this.#chance.affixesOf(part.text, path)
      return `${before}${this.#word(this.#drawn(part.text, numbered))}${behind}`
    })
    const whole = texts.join('')
    if (!plain || type === 'text') return whole
    return type === 'number' ? Number(whole) : (JSON.parse(whole) as boolean | null)
  }

  #word(word: string): string {
    this.used = true
    return word
  }

  /** With a number if it stands elsewhere too. */
  #drawn(word: string, numbered: boolean): string {
    if (!numbered || (this.#counts.get(word) ?? 0) < 2) return '‹chance›'
    return `‹chance ${this.#numberOf('', word)}›`
  }

  #numberOf(kind: string, id: string): number {
    const key = `${kind} ${id}`
    const count = [...this.#numbers.keys()].filter((one) => one.startsWith(`${kind} `)).length
    const number = this.#numbers.get(key) ?? count + 1
    this.#numbers.set(key, number)
    return number
  }

  /** `‹clock›`, `‹clock +30 d›` */
  #time({ at, grain, ofDay }: Time): string {
    const { from, to } = this.#span
    const middle = at - (from + to) / 2
    const offset = ofDay ? 0 : middle
    const tolerance = (to - from) / 2 + 50 + grain
    for (const [unit, name] of units) {
      const count = Math.round(offset / unit)
      if (Math.abs(offset - count * unit) > tolerance && unit > 1_000) continue
      return count === 0 ? '‹clock›' : `‹clock ${count > 0 ? '+' : '-'}${Math.abs(count)} ${name}›`
    }
    return '‹clock›'
  }
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const
