/** The ends of two runs as items that can be held against each other: rows and answers, with drawn values in them. */
import type { Item, Piece } from './alike.ts'
import { type Chance, leavesIn } from './chance.ts'
import type { Leaf, Node, Prepared, PreparedRow } from './prepared.ts'
import type { Time } from './text-parts.ts'
import { groupsOf, type Motion, type Seen } from './times.ts'

/** What is compared. */
export interface Scope {
  /** Tables that are left out. */
  readonly without: ReadonlySet<string>
  readonly flows: readonly number[]
  /** How to read values that may be keys; each as the key that it may be, unless it is here. */
  readonly readings: ReadonlyMap<Node, Reading>
}

/** A value as it is, or as the key of one of these columns. */
export type Reading = 'literal' | { readonly columns: readonly string[] }

/** Both ends, and whether times were so close together that they could not be told apart. */
export interface Ends {
  readonly one: readonly Item[]
  readonly other: readonly Item[]
  readonly blurred: boolean
}

export function endsOf(chance: Chance, one: Prepared, other: Prepared, scope: Scope): Ends {
  const [left, right] = withoutEqual(one, other, scope)
  const groups = new Map<Time, number>()
  let blurred = false
  for (const { seen, motion } of timesOf(chance, left, right).values()) {
    const found = groupsOf(seen, motion)
    for (const [time, group] of found.of) groups.set(time, group)
    blurred ||= found.blurred
  }
  const items = ({ rows, ends }: Chosen): readonly Item[] => {
    const writer = new Writer(chance, groups, scope.readings)
    for (const { table, columns, row } of rows) writer.row(table, columns, row)
    ends.forEach((end, place) => writer.end(scope.flows[place] as number, end))
    return writer.items
  }
  return { one: items(left), other: items(right), blurred }
}

/** The parts of an end that are compared. */
interface Chosen {
  readonly run: Prepared
  readonly rows: readonly { table: string; columns: readonly string[]; row: PreparedRow }[]
  readonly ends: readonly Node[]
}

/** By run, which is held against many others, and a table at a time. */
const texts = new WeakMap<Prepared, ReadonlyMap<string, number>>()

/** How often each row is there to the letter, by its table and text. */
function textsOf(run: Prepared): ReadonlyMap<string, number> {
  const known = texts.get(run)
  if (known !== undefined) return known
  const counts = new Map<string, number>()
  for (const { name, rows } of run.tables) {
    for (const { text } of rows) {
      if (text === undefined) continue
      const key = `${name} ${text}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  }
  texts.set(run, counts)
  return counts
}

/** Rows that are the same to the letter need no look; most of a seed are. */
function withoutEqual(one: Prepared, other: Prepared, scope: Scope): readonly [Chosen, Chosen] {
  const [left, right] = [textsOf(one), textsOf(other)]
  const chosen = (run: Prepared): Chosen => {
    const skipped = new Map<string, number>()
    return {
      run,
      ends: scope.flows.map((flow) => run.ends[flow] as Node),
      rows: run.tables.flatMap(({ name, columns, rows }) => {
        if (scope.without.has(name)) return []
        const head = { table: name, columns, row: { cells: [], text: undefined } }
        const kept = rows.flatMap((row) => {
          const key = `${name} ${row.text}`
          const both =
            row.text === undefined ? 0 : Math.min(left.get(key) ?? 0, right.get(key) ?? 0)
          const already = skipped.get(key) ?? 0
          skipped.set(key, already + 1)
          return already < both ? [] : [{ table: name, columns, row }]
        })
        return [head, ...kept]
      }),
    }
  }
  return [chosen(one), chosen(other)]
}

/** The times that move, by place. */
function timesOf(
  chance: Chance,
  ...both: readonly Chosen[]
): ReadonlyMap<string, { readonly seen: Seen[]; readonly motion: Motion }> {
  const found = new Map<string, { readonly seen: Seen[]; readonly motion: Motion }>()
  for (const { run, rows, ends } of both) {
    for (const node of [...rows.flatMap(({ row }) => row.cells), ...ends]) {
      for (const { path, parts } of leavesIn(node)) {
        if (chance.isUnclear(path)) continue
        for (const part of parts) {
          const motion = part.kind === 'time' ? chance.motionAt(path, part) : undefined
          if (part.kind !== 'time' || motion === undefined) continue
          const at = found.get(path) ?? { seen: [], motion }
          at.seen.push({ time: part, span: run.span })
          found.set(path, at)
        }
      }
    }
  }
  return found
}

/** Marks of ours, which no text has. */
const [open, close] = ['\uE002', '\uE003']
const anything = `${open}?${close}`

class Writer {
  readonly items: Item[] = []
  readonly #chance: Chance
  readonly #groups: ReadonlyMap<Time, number>
  readonly #readings: Scope['readings']
  #objects = 0

  constructor(
    chance: Chance,
    groups: ReadonlyMap<Time, number>,
    readings: ReadonlyMap<Node, Reading>,
  ) {
    this.#chance = chance
    this.#groups = groups
    this.#readings = readings
  }

  row(table: string, columns: readonly string[], { cells }: PreparedRow): void {
    const pieces: Piece[] = [`${table} ${cells.length === 0 ? `(${columns.join()})` : ''}`]
    cells.forEach((cell, place) => {
      pieces.push(` ${columns[place]}=`)
      this.#write(cell, pieces)
    })
    this.items.push(pieces)
  }

  end(flow: number, node: Node): void {
    const pieces: Piece[] = [`flow ${flow} `]
    this.#write(node, pieces)
    this.items.push(pieces)
  }

  #write(node: Node, to: Piece[]): void {
    if (this.#chance.isUnclear(node.path)) to.push(anything)
    else if (node.kind === 'leaf') this.#leaf(node, to)
    else if (node.kind === 'key') to.push({ drawn: node.key.id })
    else if (node.kind === 'perhaps') this.#perhaps(node, to)
    else if (node.kind === 'object') this.#object(node, to)
    else {
      to.push(open)
      for (const item of node.kind === 'list' ? node.items : node.parts) {
        this.#write(item, to)
        to.push(',')
      }
      to.push(close)
    }
  }

  #leaf({ path, type, parts }: Leaf, to: Piece[]): void {
    const quote = type === 'text' ? '"' : ''
    to.push(quote)
    for (const one of parts) {
      const group = one.kind === 'time' ? this.#groups.get(one) : undefined
      const part = this.#chance.asWord(path, one)
      if (group !== undefined) to.push(`${open}time ${group}${close}`)
      else if (part.kind !== 'word' || !this.#chance.isDrawn(part.text)) to.push(part.text)
      else {
        const [before, behind] = this.#chance.affixesOf(part.text, path)
        to.push(before, { drawn: part.text }, behind)
      }
    }
    to.push(quote)
  }

  #perhaps(node: Extract<Node, { kind: 'perhaps' }>, to: Piece[]): void {
    const { literal, keys } = node.perhaps
    const reading = this.#readings.get(node)
    if (reading === 'literal') {
      to.push(JSON.stringify(literal))
      return
    }
    for (const { column, id } of keys) {
      if (reading && !reading.columns.includes(column)) continue
      to.push(`${open}${column} `, { drawn: id }, close)
    }
  }

  /** Names that were drawn have no order; each entry is an item of its own then, bound to the object. */
  #object({ entries }: Extract<Node, { kind: 'object' }>, to: Piece[]): void {
    const isDrawn = ({ name }: (typeof entries)[number]): boolean =>
      name.parts.some((part) => part.kind === 'word' && this.#chance.isDrawn(part.text))
    const drawn = entries.filter(isDrawn)
    const object = { drawn: `${open}${(this.#objects += 1)}` }
    to.push('{')
    if (drawn.length > 0) to.push(object, String(drawn.length))
    for (const entry of entries) {
      const pieces: Piece[] = drawn.includes(entry) ? [object, ' has '] : to
      this.#leaf(entry.name, pieces)
      pieces.push(':')
      this.#write(entry.value, pieces)
      pieces.push(',')
      if (pieces !== to) this.items.push(pieces)
    }
    to.push('}')
  }
}
