import type { QueryConfig } from 'pg'
import type { Fact, FactTable, RowKey, Span } from '../../core/facts.ts'
import type { FinalTable } from '../../core/model.ts'
import { inShort } from '../../core/long-text.ts'
import { readJson } from '../../core/read-json.ts'
import {
  isWord,
  looksDrawn,
  maskClock,
  maskMoment,
  newKeyWord,
  type Standing,
  standingOf,
} from './chance.ts'
import type { Control } from '../connection/control.ts'
import { type FindKeys, nowhere, valueFact } from './end-facts.ts'
import { readStateTables, type StateColumn, type StateTable } from './state-columns.ts'

type Row = readonly (string | null)[]

/** The rows that a run left behind, with values of chance replaced by words. */
export interface FinalState {
  readonly tables: readonly FinalTable[]
  /** The same as text: equal if and only if the states are. */
  readonly text: string
  /** The rows as they are, with the keys that were drawn known as such. */
  readonly facts: readonly FactTable[]
  readonly findKeys: FindKeys
  /** Tables that could not be read, and why. */
  readonly unread: ReadonlyMap<string, string>
}

export interface StateReader {
  /** Called after the seed: what is there now was not drawn during the run. */
  start(stamp: string): Promise<void>
  /** What each column has now, as text; of tables that the seed puts back exactly nothing. */
  columns(): Promise<ReadonlyMap<string, string>>
  /** Whether the seed puts back all of them exactly. */
  isPutBack(): boolean
  /** `stamp` is given if the flows may have changed the tables themselves. */
  read(span: Span, stamp?: string): Promise<FinalState>
}

type Oracle = { readonly tables?: readonly string[]; readonly ignore?: readonly string[] }

// Planning these texts takes longer than running them, and they rarely change.
let texts = 0

/** `putBack`: tables that have the same rows whenever it starts. */
export function createStateReader(
  control: Control,
  oracle: Oracle,
  putBack: ReadonlySet<string> = new Set(),
): StateReader {
  let known: string | undefined
  let started: string | undefined
  let tables: readonly StateTable[] = []
  let unread: ReadonlyMap<string, string> = new Map()
  let keyed: readonly (readonly [StateTable, StateColumn])[] = []
  let keysQuery: QueryConfig | undefined
  let rowsQuery: QueryConfig | undefined
  let columnsQuery: QueryConfig | undefined
  let moving: readonly StateTable[] = []
  let seeded = new Map<string, ReadonlySet<string>>()
  let standing = new Map<string, Standing>()
  // Keys of runs before: what comes again was not drawn.
  const earlier = new Set<string>()

  async function look(stamp: string): Promise<void> {
    if (stamp === known) return
    known = stamp
    const all = await readStateTables(control, oracle.tables, oracle.ignore ?? [])
    tables = all.tables
    unread = all.unread
    keyed = tables.flatMap((table) =>
      table.columns
        .filter((column) => isOwnKey(column) || column.type === 'clock')
        .map((column) => [table, column] as const),
    )
    keysQuery = union(
      keyed.map(
        ([{ quoted }, { name }]) => `(SELECT array_agg(${quote(name)}::text) FROM ${quoted})`,
      ),
    )
    moving = tables.filter(({ quoted }) => !putBack.has(quoted))
    rowsQuery = union(tables.map(rowsOf))
    columnsQuery = moving.length === tables.length ? rowsQuery : union(moving.map(rowsOf))
  }

  async function start(stamp: string): Promise<void> {
    await look(stamp)
    // Their keys are those of the start before.
    if (stamp === started && moving.length === 0) return
    started = stamp
    const found = await ask<readonly string[] | null>(keysQuery)
    seeded = new Map(
      keyed.map(([table, column], place) => [
        `${table.name}.${column.name}`,
        new Set(found[place] ?? []),
      ]),
    )
    // What the seed takes from the clock is another one each time.
    standing = new Map(
      [...seeded].map(([name, values]) => {
        const before = standing.get(name)?.values
        return [name, standingOf(new Set([...values].filter((one) => before?.has(one) ?? true)))]
      }),
    )
  }

  async function columns(): Promise<ReadonlyMap<string, string>> {
    const found = await ask<readonly Row[]>(columnsQuery)
    return new Map(
      moving.flatMap(({ name, columns: all }, place) =>
        all.map((column, index) => {
          const values = (found[place] ?? []).map((row) => JSON.stringify(row[index] ?? null))
          return [`${name}.${column.name}`, values.sort().join()] as const
        }),
      ),
    )
  }

  async function read(span: Span, stamp?: string): Promise<FinalState> {
    if (stamp !== undefined) await look(stamp)
    const found = await ask<readonly Row[]>(rowsQuery)
    const contents = tables.map((_, place) =>
      (found[place] ?? []).map((row) => row.map((cell) => (cell === null ? null : inShort(cell)))),
    )
    return { ...canonical(tables, contents, { seeded, standing, earlier }, span), unread }
  }

  /** What each part of the union says, in the order of the parts. */
  async function ask<Found>(query: QueryConfig | undefined): Promise<Found[]> {
    if (!query) return []
    const { rows } = await control.client.query<{ place: number; found: Found }>(query)
    return rows.toSorted((one, other) => one.place - other.place).map(({ found }) => found)
  }

  return { start, columns, isPutBack: () => moving.length === 0, read }
}

function rowsOf({ quoted, columns }: StateTable): string {
  const list = columns.map(({ name }) => `${quote(name)}::text`).join(', ')
  return `(SELECT coalesce(jsonb_agg(ARRAY[${list}]::text[]), '[]') FROM ${quoted})`
}

function union(parts: readonly string[]): QueryConfig | undefined {
  if (parts.length === 0) return undefined
  texts += 1
  return {
    name: `holdfast_race_state_${texts}`,
    text: parts
      .map((part, place) => `SELECT ${place} AS place, ${part} AS found`)
      .join(' UNION ALL '),
  }
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

interface KnownKeys {
  /** By column, before the run. */
  readonly seeded: ReadonlyMap<string, ReadonlySet<string>>
  /** The same of what was there before every run. */
  readonly standing: ReadonlyMap<string, Standing>
  /** After earlier runs; those of this one are added. */
  readonly earlier: Set<string>
}

/** The row that has a key. */
interface Owner {
  readonly table: number
  readonly row: Row
  /** By the database, and not by the program. */
  readonly isGenerated: boolean
}

function isOwnKey({ key, generated, refers }: StateColumn): boolean {
  return (key || generated) && refers === undefined
}

/**
 * A key that was drawn during the run is replaced by a word, and where another row refers to it by
 * what the row that it belongs to says. What the seed wrote keeps its keys: they tell rows apart.
 */
function canonical(
  tables: readonly StateTable[],
  contents: readonly (readonly Row[])[],
  { seeded, standing, earlier }: KnownKeys,
  span: Span,
): Omit<FinalState, 'unread'> {
  const again = new Set(earlier)
  // What the seed draws anew each time is as new as what the flows draw.
  const isFixed = (name: string, value: string): boolean =>
    seeded.get(name)?.has(value) === true && standing.get(name)?.values.has(value) !== false
  const owners = new Map<string, Owner>()
  // Of those that the program made, the comparison knows more: which of them come again in other runs.
  const generatedBy = (column: string | undefined, value: string): Owner | undefined => {
    const owner = owners.get(`${column}=${value}`)
    return owner?.isGenerated === true ? owner : undefined
  }

  tables.forEach((table, place) => {
    table.columns.forEach((column, index) => {
      const name = `${table.name}.${column.name}`
      if (!isOwnKey(column)) return
      for (const row of contents[place] ?? []) {
        const value = row[index]
        if (value === null || value === undefined || isFixed(name, value)) continue
        earlier.add(`${name}=${value}`)
        // A key that the program made: one that comes again in every run is the same key.
        if (!column.generated && (!looksDrawn(value) || again.has(`${name}=${value}`))) continue
        owners.set(`${name}=${value}`, { table: place, row, isGenerated: column.generated })
      }
    })
  })

  function cells(place: number, row: Row, depth: number): (string | null)[] {
    const table = tables[place]
    return row.map((value, index) => {
      const column = table?.columns[index]
      if (value === null || !column || !table) return null
      if (owners.has(`${table.name}.${column.name}=${value}`)) return newKeyWord
      const owner = owners.get(`${column.refers}=${value}`)
      if (owner) return depth > 2 ? newKeyWord : `→${reference(owner.table, owner.row, depth + 1)}`
      if (column.type !== 'clock') return maskClock(value, span)
      return maskMoment(value, span, standing.get(`${table.name}.${column.name}`))
    })
  }

  function reference(place: number, row: Row, depth: number): string {
    const shown = cells(place, row, depth).filter((cell) => cell !== newKeyWord)
    return `(${shown.map((cell) => cell ?? 'null').join(', ')})`
  }

  const result = tables.map((table, place): FinalTable => {
    const rows = (contents[place] ?? []).map((row) => cells(place, row, 0))
    // A column that says nothing but "new" or "now" is of no interest to anybody.
    const shown = table.columns.flatMap((_, index) =>
      rows.length > 0 && rows.every((row) => isWord(row[index])) ? [] : [index],
    )
    return {
      name: table.name,
      columns: shown.map((index) => table.columns[index]?.name ?? ''),
      rows: rows
        .map((row) => shown.map((index) => row[index] ?? null))
        .sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)),
    }
  })
  const findKeys: FindKeys = (value, name, beside) => {
    const meant = tablesMeant(tables, name, beside)
    const keys = tables.flatMap((table, place) =>
      table.columns.flatMap((column): (RowKey & { column: string })[] => {
        const own = `${table.name}.${column.name}`
        const owner = generatedBy(own, value)
        if (owner === undefined || (meant.length > 0 && !meant.includes(table))) return []
        const shown = `${newKeyWord} ${table.name}${reference(place, owner.row, 1)}`
        return [{ ...rowKey(own, value, shown), column: own }]
      }),
    )
    return { keys, certain: meant.length > 0 || looksDrawn(value) }
  }
  // A column that has a value which is no key of some rows has none of their keys.
  const mayRefer = (table: StateTable, index: number): FindKeys => {
    const all = (contents[tables.indexOf(table)] ?? []).flatMap((row) => row[index] ?? [])
    const isKeyOf = (own: string): boolean =>
      all.every((value) => /^\D/.test(value) || everyKey(own).has(value))
    return (value, name, beside) => {
      if (name === '') return { keys: [], certain: false }
      const found = findKeys(value, name, beside)
      return found.certain
        ? found
        : { ...found, keys: found.keys.filter(({ column }) => isKeyOf(column)) }
    }
  }
  const keySets = new Map<string, ReadonlySet<string>>()
  function everyKey(own: string): ReadonlySet<string> {
    const known = keySets.get(own)
    if (known) return known
    const found = tables.flatMap((table, place) =>
      table.columns.flatMap((column, index) =>
        `${table.name}.${column.name}` === own
          ? (contents[place] ?? []).flatMap((row) => row[index] ?? [])
          : [],
      ),
    )
    keySets.set(own, new Set(found))
    return keySets.get(own) as ReadonlySet<string>
  }

  function fact(table: StateTable, index: number, value: string | null): Fact {
    const column = table.columns[index] as StateColumn
    if (value === null) return null
    const own = `${table.name}.${column.name}`
    if (generatedBy(own, value)) return rowKey(own, value, newKeyWord)
    const owner = generatedBy(column.refers, value)
    if (owner) return rowKey(`${column.refers}`, value, `→${reference(owner.table, owner.row, 1)}`)
    if (column.refers !== undefined || isOwnKey(column)) return value
    // Without a constraint its name may tell.
    const place = { ...nowhere, name: column.name }
    const find = mayRefer(table, index)
    const list = /^\{\d+(?:,\d+)*\}$/.test(value) ? value.slice(1, -1).split(',') : undefined
    const inside = list ?? (/^[[{]/.test(value) ? readJson(value) : undefined)
    if (inside === undefined && !/^(?:\d+|[\w-]{8,})$/.test(value)) return value
    if (inside === undefined && !/ids?$/i.test(column.name)) return value
    let hasKeys = false
    const tree = valueFact(inside ?? value, place, (...asked) => {
      const found = find(...asked)
      hasKeys ||= found.keys.length > 0
      return found
    })
    return hasKeys ? tree : value
  }

  const facts = tables.map(
    (table, place): FactTable => ({
      name: table.name,
      columns: table.columns.map(({ name }) => name),
      rows: (contents[place] ?? []).map((row) =>
        table.columns.map((_, index) => fact(table, index, row[index] ?? null)),
      ),
    }),
  )
  const text = result.map((table) => JSON.stringify(table)).join('\n')
  return { tables: result, text, facts, findKeys }
}

/** A key that is like no other is the same wherever it stands; a number only where it is known to refer to the row. */
function rowKey(column: string, value: string, shown: string): RowKey {
  const unique = value.length >= 8 && /[a-z]/i.test(value)
  return { kind: 'key', id: unique ? value : `${column}=${value}`, shown }
}

/** The tables whose keys go by that name, as `cartId` or `/carts/3`; else those that have all these columns. */
function tablesMeant(
  tables: readonly StateTable[],
  name: string,
  beside: readonly string[],
): readonly StateTable[] {
  const stem = name
    .replace(/_?ids?$/i, '')
    .replaceAll('_', '')
    .toLowerCase()
  const isNamed = ({ name: table }: StateTable): boolean => {
    const bare = table
      .slice(table.indexOf('.') + 1)
      .replaceAll('_', '')
      .toLowerCase()
    return [stem, `${stem}s`, `${stem}es`, stem.replace(/y$/, 'ies')].includes(bare)
  }
  const named = stem === '' ? [] : tables.filter(isNamed)
  if (named.length > 0 || beside.length < 2) return named
  return tables.filter(({ columns }) =>
    beside.every((one) => columns.some((column) => column.name === one)),
  )
}
