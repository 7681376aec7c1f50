/** How values of two answers are read that may be keys of rows, or only numbers. */
import type { Reading } from './items.ts'
import type { Node, Prepared } from './prepared.ts'

type Perhaps = Extract<Node, { readonly kind: 'perhaps' }>

export type ReadingMap = ReadonlyMap<Node, Reading>

export interface Readings {
  /** All as keys: of every column in which both are, then of one of them. */
  readonly asKeys: readonly ReadingMap[]
  /** Some as they are; flows with the same code mean the same by what they return at the same place. */
  readonly asTheyAre: readonly ReadingMap[]
  /** A value that is equal as it is, and the flow that was answered it. */
  readonly equal: { readonly flow: number; readonly literal: string | number } | undefined
  /** Columns with values that may be keys, and how to read them as they are. */
  readonly columns: readonly string[]
  readonly columnsAsTheyAre: readonly ReadingMap[]
}

interface Pair {
  readonly nodes: readonly Node[]
  readonly columns: readonly string[]
  /** Pairs of one group are read in one way. */
  readonly group: string
}

/** Groups that are read in every way; of more, all are read alike. */
const mostGroups = 4
/** Ways to say of which column each group has the keys. */
const mostChoices = 27

/** The values that may be keys stand at the same places of both. `code` says what a flow sends. */
export function readingsOf(
  one: Prepared,
  other: Prepared,
  flows: readonly number[],
  code: (flow: number) => string,
): Readings {
  const pairs: Pair[] = []
  let equal: Readings['equal']
  for (const flow of flows) {
    for (const nodes of pairsOf(one.ends[flow], other.ends[flow])) {
      const group = `${code(flow)}${nodes[0].path.slice(String(flow).length)}`
      pairs.push({ nodes, columns: sharedColumns(...nodes), group })
      const [literal, same] = nodes.map(literalOf)
      if (literal !== undefined && literal === same) equal ??= { flow, literal }
    }
  }
  const cells = cellsOf(one, other)
  const groups = [...new Set(pairs.map(({ group }) => group))]
  const literal = groups.length > mostGroups ? [groups] : subsetsOf(groups)
  const all = [...pairs, ...cells]
  const columns = cells.map(({ group }) => group)
  const asKeys = choicesOf(all)
  return {
    asKeys: asKeys.map((chosen) => readingMap(all, [], chosen)),
    asTheyAre: literal
      .filter(({ length }) => length > 0)
      .map((some) => readingMap(all, [...some, ...columns])),
    equal,
    columns,
    columnsAsTheyAre: choicesOf(pairs).map((chosen) => readingMap(all, columns, chosen)),
  }
}

/** Values of tables that may be keys, by column; rows have no order, so that no two of them are a pair. */
function cellsOf(one: Prepared, other: Prepared): readonly Pair[] {
  const found = new Map<string, Perhaps[]>()
  for (const { rows } of [...one.tables, ...other.tables])
    for (const { cells } of rows)
      for (const cell of cells)
        for (const node of perhapsIn(cell))
          found.set(node.path, [...(found.get(node.path) ?? []), node])
  return [...found].map(([group, nodes]) => {
    const [first = [], ...rest] = nodes.map(columnsOf)
    const shared = first.filter((column) => rest.every((columns) => columns.includes(column)))
    return {
      nodes,
      group,
      columns: shared.length > 0 ? shared : [...new Set([first, ...rest].flat())],
    }
  })
}

function* perhapsIn(node: Node): Generator<Perhaps> {
  if (node.kind === 'perhaps') yield node
  else if (node.kind === 'list') for (const item of node.items) yield* perhapsIn(item)
  else if (node.kind === 'object') for (const { value } of node.entries) yield* perhapsIn(value)
}

/** By group, the column whose keys they are; without one, those of every column in which they are. */
type Chosen = ReadonlyMap<string, string>

function choicesOf(pairs: readonly Pair[]): readonly Chosen[] {
  const columns = new Map<string, Set<string>>()
  for (const pair of pairs) {
    const known = columns.get(pair.group) ?? new Set()
    for (const column of pair.columns) known.add(column)
    columns.set(pair.group, known)
  }
  let choices: Chosen[] = [new Map()]
  for (const [group, all] of columns) {
    if (all.size < 2 || choices.length * (all.size + 1) > mostChoices) continue
    choices = choices.flatMap((before) => [
      before,
      ...[...all].map((column) => new Map([...before, [group, column]])),
    ])
  }
  return choices
}

function readingMap(
  pairs: readonly Pair[],
  literal: readonly string[],
  choice?: Chosen,
): ReadingMap {
  const readingOf = ({ columns, group }: Pair): Reading => {
    if (literal.includes(group)) return 'literal'
    const chosen = columns.filter((column) => column === choice?.get(group))
    return { columns: chosen.length > 0 ? chosen : columns }
  }
  return new Map(pairs.flatMap((pair) => pair.nodes.map((node) => [node, readingOf(pair)])))
}

function subsetsOf(items: readonly string[]): string[][] {
  return items.reduce<string[][]>(
    (found, item) => [...found, ...found.map((subset) => [...subset, item])],
    [[]],
  )
}

/** Columns in which both are keys, of rows that say the same. Where there is none they are no keys of like rows. */
function sharedColumns(one: Node, other: Node): readonly string[] {
  if (one.kind !== 'perhaps' || other.kind !== 'perhaps') {
    return [one, other].flatMap((node) => (node.kind === 'perhaps' ? columnsOf(node) : []))
  }
  const rows = new Set(other.perhaps.keys.map(({ column, shown }) => `${column} ${shown}`))
  const shared = one.perhaps.keys.filter(({ column, shown }) => rows.has(`${column} ${shown}`))
  if (shared.length > 0) return shared.map(({ column }) => column)
  const all = new Set([...columnsOf(one), ...columnsOf(other)])
  return [...all]
}

function columnsOf({ perhaps }: Perhaps): readonly string[] {
  return perhaps.keys.map(({ column }) => column)
}

function literalOf(node: Node): string | number | undefined {
  if (node.kind === 'perhaps') return node.perhaps.literal
  if (node.kind !== 'leaf' || node.type === 'said') return undefined
  const text = node.parts.map((part) => part.text).join('')
  return node.type === 'number' ? Number(text) : text
}

/** Nodes at the same place of both, of which at least one may be a key. */
function* pairsOf(
  one: Node | undefined,
  other: Node | undefined,
): Generator<readonly [Node, Node]> {
  if (one === undefined || other === undefined) return
  if (one.kind === 'perhaps' || other.kind === 'perhaps') yield [one, other]
  else if (one.kind === 'list' && other.kind === 'list') yield* inOrder(one.items, other.items)
  else if (one.kind === 'joined' && other.kind === 'joined') yield* inOrder(one.parts, other.parts)
  else if (one.kind === 'object' && other.kind === 'object')
    yield* inOrder(
      one.entries.map(({ value }) => value),
      other.entries.map(({ value }) => value),
    )
}

function* inOrder(one: readonly Node[], other: readonly Node[]): Generator<readonly [Node, Node]> {
  for (const [place, node] of one.entries()) yield* pairsOf(node, other[place])
}

/** Whether all values that may be keys are those of rows that say what the rows of some serial run say. */
export function areKeys(run: Prepared, serial: readonly Prepared[]): boolean {
  return serial.some((one) =>
    run.ends.every((end, flow) =>
      [...pairsOf(end, one.ends[flow])].every((nodes) => areKeysOfLikeRows(...nodes)),
    ),
  )
}

function areKeysOfLikeRows(one: Node, other: Node): boolean {
  if (one.kind !== 'perhaps' || other.kind !== 'perhaps') return false
  const rows = other.perhaps.keys.map(({ column, shown }) => `${column} ${shown}`)
  return one.perhaps.keys.some(({ column, shown }) => rows.includes(`${column} ${shown}`))
}

/** Columns whose values may be keys, and are all numbers that a serial order leaves there too: people know them as such. */
export function numbersOf(found: Prepared, serial: readonly Prepared[]): ReadonlySet<string> {
  const known = Map.groupBy(serial.flatMap(literalsIn), ({ path }) => path)
  const here = Map.groupBy(literalsIn(found), ({ path }) => path)
  const isKnown = (path: string, literal: string | number): boolean =>
    known.get(path)?.some((one) => one.literal === literal) === true
  return new Set(
    [...new Set([...known.keys(), ...here.keys()])].filter(
      (path) => here.get(path)?.every(({ literal }) => isKnown(path, literal)) !== false,
    ),
  )
}

function literalsIn({ tables }: Prepared): readonly {
  readonly path: string
  readonly literal: string | number
}[] {
  return tables.flatMap(({ rows }) =>
    rows.flatMap(({ cells }) =>
      cells.flatMap((cell) =>
        [...perhapsIn(cell)].map(({ path, perhaps }) => ({ path, literal: perhaps.literal })),
      ),
    ),
  )
}
