/**
 * When two runs ended alike. Two runs of one serial order must; what differs between them all the same is chance. Of
 * that, words that were drawn are compared by where they stand, and times by their distance from the clock. What is
 * neither cannot be compared: then nothing is said about every order.
 */
import type { Note, Run } from '../../core/model.ts'
import { areAlike } from './alike.ts'
import { Chance, leavesIn } from './chance.ts'
import { endsOf, type Scope } from './items.ts'
import { breaksMoments } from './moments.ts'
import { type Node, type Prepared, prepare } from './prepared.ts'
import { areKeys, numbersOf, readingsOf, type ReadingMap } from './readings.ts'
import { type AsKeys, shownRun } from './shown.ts'

/** `different`: in whatever way values are read that chance has a part in. */
export type Likeness =
  | { readonly alike: 'same' }
  /** `moments`: in nothing but which of them are the same, which may be an accident once. */
  | { readonly alike: 'different'; readonly moments?: true }
  /** The reason why it cannot be told. */
  | { readonly alike: 'unclear'; readonly why: string }

export class Comparison {
  readonly #chance = new Chance()
  /** Tables whose rows differ in number or in shape between like runs. */
  readonly #blind = new Set<string>()
  /** Flows that were answered otherwise, and not by chance, in two like runs: what they say is not compared. */
  readonly #unsteady = new Set<number>()
  /** Runs that should have ended as this one did. */
  readonly #twins = new WeakMap<Prepared, Prepared[]>()
  readonly #flows: readonly string[]

  /** The names of the flows, for what is said about them. */
  constructor(flows: readonly string[]) {
    this.#flows = flows
  }

  /** Like runs were alike, apart from values that are compared in another way. */
  get steady(): boolean {
    return this.#left.length === 0
  }

  /** Columns that are not compared. */
  get ignored(): readonly string[] {
    return this.#chance.unclear
  }

  /** What differed between like runs. */
  get notes(): readonly Note[] {
    const drawn = this.#chance.drawnAt.filter((path) => !this.#chance.isUnclear(path))
    const left = this.#left
    const notes: Note[] = []
    if (drawn.length > 0)
      notes.push({
        kind: 'chance',
        message: `Drawn anew in every run: ${this.#list(drawn)}. Compared is only where the same value stands.`,
      })
    if (left.length > 0)
      notes.push({
        kind: 'nondeterminism',
        message: `Two runs of the same schedule differed in ${left.join(', ')}, and not only in times and drawn keys. That is not compared, so nothing is said about every order. Let it be the same in every run, or leave it out: a column by oracle.ignore, a part of an answer by not returning it.`,
      })
    return notes
  }

  /** The runs of a failure, for people. */
  shown(run: Run, serial: readonly Run[]): { readonly run: Run; readonly serial: readonly Run[] } {
    const [found, others] = [prepare(run), serial.map(prepare)]
    const areAll = areKeys(found, others)
    const show = (asKeys: AsKeys) => {
      const [here, ...there] = [run, ...serial].map((one) => shownRun(this.#chance, one, asKeys))
      return { run: here ?? run, serial: there }
    }
    const numbers = numbersOf(found, others)
    const shown = show((path) => areAll && !numbers.has(path))
    // Where they are the difference they are told by their rows.
    const text = ({ tables, outcomes }: Run): string => JSON.stringify([tables, outcomes])
    return shown.serial.some((one) => text(one) === text(shown.run)) ? show(() => areAll) : shown
  }

  /** What cannot be compared, for people. */
  get #left(): readonly string[] {
    return [
      ...[...this.#blind].map((table) => `the rows of ${table}`),
      ...new Set(this.#chance.unclear.map((path) => this.#placeOf(path))),
      ...[...this.#unsteady].map((flow) => `how ${this.#flows[flow]} ended`),
    ]
  }

  #list(paths: readonly string[]): string {
    return [...new Set(paths.map((path) => this.#placeOf(path)))].join(', ')
  }

  /** `price of public.orders.doc`, `token of what ann returned` */
  #placeOf(path: string): string {
    const [first = '', ...names] = path.replace(/ \(names\)$/, '').split(' ')
    const of = /^\d+$/.test(first) ? `what ${this.#flows[Number(first)]} returned` : first
    return names.length === 0 ? of : `${names.join('.')} of ${of}`
  }

  /** Learns from two runs that should have ended alike. Where they differ in what is hardly chance, the places. */
  learn(one: Run, other: Run): readonly string[] {
    const before = this.#left
    const [left, right] = [prepare(one), prepare(other)]
    this.#twins.set(left, [...(this.#twins.get(left) ?? []), right])
    this.#chance.learn(left, right, { motion: true })
    for (const { name, rows, columns } of left.tables) {
      if (this.#alike(left, right, { only: name }) !== false) continue
      const there = right.tables.find((table) => table.name === name)
      if (there?.columns.join() === columns.join() && there.rows.length === rows.length) {
        columns.forEach((_, place) => {
          const cells = (table: { readonly rows: typeof rows }): Node[] =>
            table.rows.map((row) => row.cells[place] as Node)
          this.#giveUpOn(cells({ rows }), cells(there), [left, right])
        })
      }
      if (this.#alike(left, right, { only: name }) === false) this.#blind.add(name)
    }
    left.ends.forEach((end, flow) => {
      if (this.sameOutcome(one, other, flow)) return
      this.#giveUpOn([end], [right.ends[flow] as Node], [left, right])
      if (!this.sameOutcome(one, other, flow)) this.#unsteady.add(flow)
    })
    // What stands in one place of one run and in two of the other.
    const flows = [...left.ends.keys()]
    const likeness = this.compare(one, other, flows)
    if (likeness.alike === 'different' && likeness.moments !== true)
      for (const flow of flows) this.#unsteady.add(flow)
    return this.#left.filter((what) => !before.includes(what))
  }

  /** Learns from two runs of one schedule which words were drawn and which times move, and nothing else. */
  learnDrawn(one: Run, other: Run): void {
    this.#chance.learn(prepare(one), prepare(other), { motion: false })
  }

  /** Whether the tables and the answers of these flows are the same. */
  compare(one: Run, other: Run, flows: readonly number[]): Likeness {
    const [left, right] = this.#met(one, other)
    const steady = flows.filter((flow) => !this.#unsteady.has(flow))
    const readings = readingsOf(left, right, steady, codeOf(other))
    let blurred = false
    const alike = (map: ReadingMap): boolean => {
      const found = this.#alike(left, right, { flows: steady, readings: map })
      blurred ||= found === undefined
      return found === true
    }
    const asKeys = readings.asKeys.some(alike)
    const { columns, equal } = readings
    const asNumbers = columns.length === 0 ? asKeys : readings.columnsAsTheyAre.some(alike)
    if (asKeys && asNumbers) {
      const serial = [right, ...(this.#twins.get(right) ?? [])]
      return breaksMoments(this.#chance, left, serial, steady)
        ? { alike: 'different', moments: true }
        : { alike: 'same' }
    }
    if (blurred) return { alike: 'unclear', why: crowded }
    if (asKeys || asNumbers)
      return {
        alike: 'unclear',
        why: `${this.#list(columns)} may hold keys of new rows, or numbers that mean something else. Only by one of the two a run is as in a serial order. Which of the two it is cannot be told: declare a foreign key, or name the column after its table (order_id).`,
      }
    if (equal === undefined || !readings.asTheyAre.some(alike)) return { alike: 'different' }
    return {
      alike: 'unclear',
      why: `${this.#flows[equal.flow]} returned ${JSON.stringify(equal.literal)}. As it is, a serial order returns it too; as the key of a new row it is another row's than in every serial order. Which of the two it is cannot be told: return a key as a field with the name of its table (orderId), and a number with another name.`,
    }
  }

  sameTables(one: Run, other: Run): boolean {
    const [left, right] = this.#met(one, other)
    const { asKeys, columnsAsTheyAre } = readingsOf(left, right, [], codeOf(other))
    return [...asKeys, ...columnsAsTheyAre].some(
      (readings) => this.#alike(left, right, { readings }) !== false,
    )
  }

  /** By itself: what the other flows and the tables say is left out. */
  sameOutcome(one: Run, other: Run, flow: number): boolean {
    if (this.#unsteady.has(flow)) return true
    const [left, right] = this.#met(one, other)
    const without = new Set([...left.tables, ...right.tables].map(({ name }) => name))
    const { asKeys, asTheyAre } = readingsOf(left, right, [flow], codeOf(other))
    return [...asKeys, ...asTheyAre].some(
      (readings) => this.#alike(left, right, { flows: [flow], readings, without }) !== false,
    )
  }

  /** Whether a run has words of which it is not known whether they were drawn: its schedule, run again, tells. */
  isDoubtful(run: Run): boolean {
    const prepared = prepare(run)
    this.#chance.meet(prepared)
    return this.#chance.isDoubtful(prepared)
  }

  #met(one: Run, other: Run): readonly [Prepared, Prepared] {
    const both = [prepare(one), prepare(other)] as const
    for (const run of both) this.#chance.meet(run)
    return both
  }

  #alike(
    one: Prepared,
    other: Prepared,
    scope: Partial<Scope> & { readonly only?: string },
  ): boolean | undefined {
    const { only, flows = [], readings = new Map() } = scope
    const left = [...one.tables, ...other.tables]
      .map(({ name }) => name)
      .filter((name) => this.#blind.has(name) || (only !== undefined && name !== only))
    const without = scope.without ?? new Set(left)
    const ends = endsOf(this.#chance, one, other, { without, flows, readings })
    const alike = areAlike(ends.one, ends.other)
    return alike === true && ends.blurred ? undefined : alike
  }

  /** Places of values that differ although neither drawn words nor times do. */
  #giveUpOn(
    one: readonly Node[],
    other: readonly Node[],
    [left, right]: readonly [Prepared, Prepared],
  ): void {
    if (shapesOf(one) !== shapesOf(other)) {
      for (const { path } of one.slice(0, 1)) if (!/^\d+$/.test(path)) this.#chance.giveUp(path)
      return
    }
    const paths = new Set(one.flatMap((node) => [...leavesIn(node)].map(({ path }) => path)))
    for (const path of paths) {
      const only = (run: Prepared, nodes: readonly Node[]): Prepared => ({
        span: run.span,
        tables: [],
        ends: nodes.flatMap((node) => [...leavesIn(node)].filter((leaf) => leaf.path === path)),
      })
      const [here, there] = [only(left, one), only(right, other)]
      const flows = [...here.ends.keys()]
      const ends = endsOf(this.#chance, here, there, {
        without: new Set(),
        flows,
        readings: new Map(),
      })
      const bare = (items: typeof ends.one): string =>
        items
          .map(([, ...pieces]) =>
            pieces.map((piece) => (typeof piece === 'string' ? piece : '‹›')).join(''),
          )
          .sort()
          .join('\n')
      if (bare(ends.one) !== bare(ends.other)) this.#chance.giveUp(path)
    }
  }
}

const crowded =
  'There are so many drawn values or times in like places that they cannot be told apart.'

/** What the flows of a run sent. */
function codeOf({ steps }: Run): (flow: number) => string {
  return (flow) =>
    JSON.stringify(steps.flatMap((step) => (step.flow === flow ? step.statements : [])))
}

function shapesOf(nodes: readonly Node[]): string {
  return nodes
    .map((node) => JSON.stringify(shapeOf(node)))
    .sort()
    .join()
}

/** How it is built, without values. */
function shapeOf(node: Node): unknown {
  if (node.kind === 'list') return node.items.map(shapeOf)
  if (node.kind === 'joined') return { joined: node.parts.map(shapeOf) }
  if (node.kind === 'object') return node.entries.map(({ value }) => [value.path, shapeOf(value)])
  return node.kind === 'leaf' ? node.type : 'key'
}
