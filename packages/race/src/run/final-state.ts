import type { FinalTable } from '../core/model.ts'
import { looksDrawn, maskClock, maskMoment, newKeyWord, type Span } from './chance.ts'
import type { Control } from './control.ts'
import { readStateTables, type StateTable } from './state-columns.ts'

type Row = readonly (string | null)[]

/** The rows that a run left behind, with values of chance replaced by words. */
export interface FinalState {
  readonly tables: readonly FinalTable[]
  /** The same as text: equal if and only if the states are. */
  readonly text: string
  /** Keys that were drawn during the run. */
  readonly drawn: ReadonlySet<string>
}

export interface StateReader {
  /** Called after the seed: what is there now was not drawn during the run. */
  start(stamp: string): Promise<void>
  read(span: Span): Promise<FinalState>
}

export function createStateReader(
  control: Control,
  oracle: { readonly tables?: readonly string[]; readonly ignore?: readonly string[] },
): StateReader {
  let known: string | undefined
  let tables: readonly StateTable[] = []
  let seeded = new Map<string, ReadonlySet<string>>()

  async function start(stamp: string): Promise<void> {
    if (stamp !== known) {
      tables = await readStateTables(control, oracle.tables, oracle.ignore ?? [])
      known = stamp
    }
    const keyed = tables.flatMap((table) =>
      table.columns
        .filter((column) => column.key && column.refers === undefined)
        .map((column) => ({ table, column })),
    )
    seeded = new Map()
    if (keyed.length === 0) return
    const parts = keyed.map(
      ({ table, column }, index) =>
        `SELECT ${index} AS place, (SELECT array_agg(${quote(column.name)}::text) ` +
        `FROM ${table.quoted}) AS values`,
    )
    const { rows } = await control.client.query<{ place: number; values: string[] | null }>(
      parts.join(' UNION ALL '),
    )
    for (const { place, values } of rows) {
      const found = keyed[place]
      if (found) seeded.set(`${found.table.name}.${found.column.name}`, new Set(values))
    }
  }

  async function read(span: Span): Promise<FinalState> {
    const compared = tables.filter(({ columns }) => columns.length > 0)
    const parts = compared.map(({ quoted, columns }, index) => {
      const list = columns.map(({ name }) => `${quote(name)}::text`).join(', ')
      return `SELECT ${index} AS place, (SELECT coalesce(jsonb_agg(ARRAY[${list}]), '[]') FROM ${quoted}) AS rows`
    })
    if (parts.length === 0) return { tables: [], text: '', drawn: new Set() }
    const { rows } = await control.client.query<{ place: number; rows: Row[] }>(
      parts.join(' UNION ALL '),
    )
    const contents = compared.map(
      (_, index) => rows.find(({ place }) => place === index)?.rows ?? [],
    )
    return canonical(compared, contents, seeded, span)
  }

  return { start, read }
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * A key that was drawn during the run is replaced by a word, and where another row refers to it by
 * what the row that it belongs to says. What the seed wrote keeps its keys: they tell rows apart.
 */
function canonical(
  tables: readonly StateTable[],
  contents: readonly (readonly Row[])[],
  seeded: ReadonlyMap<string, ReadonlySet<string>>,
  span: Span,
): FinalState {
  const drawn = new Set<string>()
  const owners = new Map<string, { readonly table: number; readonly row: Row }>()

  tables.forEach((table, place) => {
    table.columns.forEach((column, index) => {
      const name = `${table.name}.${column.name}`
      if (!column.key || column.refers !== undefined) return
      for (const row of contents[place] ?? []) {
        const value = row[index]
        if (value === null || value === undefined || seeded.get(name)?.has(value)) continue
        if (!/^\d+$/.test(value) && column.type !== 'uuid' && !looksDrawn(value)) continue
        drawn.add(value)
        owners.set(`${name}=${value}`, { table: place, row })
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
      return column.type === 'clock' ? maskMoment(value, span) : maskClock(value, span)
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
      rows.length > 0 && rows.every((row) => row[index]?.startsWith('‹')) ? [] : [index],
    )
    return {
      name: table.name,
      columns: shown.map((index) => table.columns[index]?.name ?? ''),
      rows: rows
        .map((row) => shown.map((index) => row[index] ?? null))
        .sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)),
    }
  })
  return { tables: result, text: result.map((table) => JSON.stringify(table)).join('\n'), drawn }
}
