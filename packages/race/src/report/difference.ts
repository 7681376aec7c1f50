import type { Failure, FinalTable, FlowOutcome, KnownTable, Report, Run } from '../core/model.ts'
import { cut } from './sql/shorten.ts'
import { list, times } from './words.ts'

type Row = readonly (string | null)[]

/** How a table differs from what the nearest serial order left. */
export interface TableDifference {
  readonly name: string
  /** With its schema. */
  readonly fullName: string
  readonly columns: readonly string[]
  readonly found: number
  /** How many rows the serial orders left: one number, unless they differ. */
  readonly serial: readonly number[]
  /** Rows that only the found state has. */
  readonly extra: readonly Row[]
  /** Rows that only the serial state has. */
  readonly missing: readonly Row[]
  /** Columns by which rows are told apart: the key, or the first column where that is drawn anew. */
  readonly key: readonly string[]
  readonly isKey: boolean
  /** Rows of both that are the same in these columns. */
  readonly changed: readonly { readonly found: Row; readonly serial: Row }[]
}

export interface Difference {
  /** Names of the flows, in the serial order that comes nearest; empty if there was none. */
  readonly nearest: readonly string[]
  readonly orders: number
  readonly tables: readonly TableDifference[]
  /** Which flows ended as in no serial order. */
  readonly outcomes: readonly string[]
  /** Each flow ended as it may, and not all of them together. */
  readonly together?: string
}

export function differenceOf(
  whole: Failure,
  { flows, known = [] }: Pick<Report, 'flows' | 'known'>,
): Difference {
  const failure = compared(whole)
  const { run, serial } = failure
  const candidates = serial.map(({ order, run: other }) => {
    const tables = tableDifferences(run, other, serial, known)
    const odd = run.outcomes.filter((one, at) => outcomeText(one) !== outcomeOf(other, at)).length
    const weight = tables.reduce(
      (sum, { extra, missing, changed }) => sum + extra.length + missing.length + changed.length,
      odd,
    )
    return { order, tables, weight }
  })
  const [best] = candidates.toSorted((one, other) => one.weight - other.weight)
  const outcomes = flows.flatMap((who, at) => outcomeDifference(failure, who, at))
  const together = outcomes.length > 0 ? undefined : togetherOf(failure, flows)
  return {
    nearest: (best?.order ?? []).map((flow) => flows[flow] ?? '?'),
    orders: serial.length,
    tables: best?.tables ?? [],
    outcomes,
    ...(together === undefined ? {} : { together }),
  }
}

/** `a returned 200 and b returned 200`, where that is in no serial order. */
function togetherOf({ run, serial }: Failure, flows: readonly string[]): string | undefined {
  const text = (of: Run): string => list(flows.map((who, at) => `${who} ${outcomeOf(of, at)}`))
  const found = text(run)
  const others = [...new Set(serial.map((one) => text(one.run)))]
  if (others.length === 0 || others.includes(found)) return undefined
  return `${found}; one after the other, ${others.join(', or ')}`
}

/** The failure without the columns that the search did not compare. */
function compared(failure: Failure): Failure {
  const ignored = new Set(failure.ignored ?? [])
  if (ignored.size === 0) return failure
  const without = (run: Run): Run => ({
    ...run,
    tables: run.tables.map(({ name, columns, rows }) => {
      const kept = columns.map((column) => !ignored.has(`${name}.${column}`))
      const keep = <T>(cells: readonly T[]): T[] => cells.filter((_, at) => kept[at])
      return { name, columns: keep(columns), rows: rows.map(keep) }
    }),
  })
  return {
    ...failure,
    run: without(failure.run),
    serial: failure.serial.map(({ order, run }) => ({ order, run: without(run) })),
  }
}

/** Of a message; what is longer is a stack or a dump. */
const longest = 400

/** What is wrong, in one line: the rule that was broken, or what no serial order leaves. */
export function faultOf(failure: Failure, difference: Difference): string {
  if (failure.kind !== 'not-serial') return cut(failure.message, longest)
  const { tables, outcomes, together, nearest } = difference
  const [counted] = tables.filter(({ found, serial }) => !serial.includes(found))
  if (counted !== undefined) {
    const { name, found, serial } = counted
    return `${name} has ${times(found, 'row')}; after every serial order it has ${serial.join(' or ')}`
  }
  const [value] = tables.flatMap((table) => valueFault(compared(failure), table))
  if (value !== undefined) return value
  const [outcome] = outcomes
  const [row] = tables.flatMap((table) => rowFault(table, nearest))
  return outcome ?? row ?? together ?? cut(failure.message, longest)
}

/** `doctor b: on_call is false; after a, b it is true, and no serial order leaves all of this` */
function rowFault(table: TableDifference, nearest: readonly string[]): string[] {
  const { name, columns, changed, extra, missing } = table
  const [first] = changed
  const at = first ? first.found.findIndex((cell, column) => cell !== first.serial[column]) : -1
  const after = nearest.join(', ')
  if (first && at !== -1) {
    return [
      `${rowName(table, first.found)}: ${columns[at]} is ${first.found[at] ?? 'NULL'}; after ${after} it is ${first.serial[at] ?? 'NULL'}, and no serial order leaves all of this`,
    ]
  }
  const shown = (row: Row): string => row.map((cell) => cell ?? 'NULL').join(' ')
  const [more, less] = [extra[0], missing[0]]
  const instead = less === undefined ? 'does not' : `leaves ${shown(less)}`
  if (more)
    return [
      `${name} has ${shown(more)}; the order ${after} ${instead}, and no serial order leaves all of this`,
    ]
  return less
    ? [
        `${name} lacks ${shown(less)}, which the order ${after} leaves; no serial order leaves all of this`,
      ]
    : []
}

/** `stock A-1: qty is 4; after every serial order it is 3` */
function valueFault({ serial }: Failure, difference: TableDifference): string[] {
  const { fullName, columns, changed } = difference
  const own = (row: Row): string => text(cellsOf(difference, row))
  return changed.flatMap(({ found }) =>
    columns.flatMap((column, at): string[] => {
      const rows = serial.flatMap(({ run }) => {
        const table = run.tables.find((one) => one.name === fullName)
        const rows = table === undefined ? [] : inColumns(table, columns)
        return rows.filter((row) => own(row) === own(found))
      })
      const values = [...new Set(rows.map((row) => row[at] ?? 'NULL'))]
      const here = found[at] ?? 'NULL'
      if (values.length === 0 || values.includes(here)) return []
      return [
        `${rowName(difference, found)}: ${column} is ${here}; after every serial order it is ${values.join(' or ')}`,
      ]
    }),
  )
}

type Keyed = Pick<TableDifference, 'name' | 'columns' | 'key' | 'isKey'>

function cellsOf({ columns, key }: Pick<Keyed, 'columns' | 'key'>, row: Row): Row {
  return key.map((column) => row[columns.indexOf(column)] ?? null)
}

/** `stock A-1`; by another column than its key, `invoices with customer_id 2`. */
function rowName(table: Keyed, row: Row): string {
  const cells = cellsOf(table, row)
  if (table.isKey) return `${table.name} ${cells.join(' ')}`
  return `${table.name} with ${table.key.map((column, at) => `${column} ${cells[at]}`).join(', ')}`
}

/** The primary key, if it is shown; where no key is known, the first column is as good as one. */
function keyOf(
  name: string,
  columns: readonly string[],
  known: readonly KnownTable[],
): Pick<Keyed, 'key' | 'isKey'> {
  const table = known.find((one) => one.name === name)
  const key = table?.columns.filter((one) => one.key).map((one) => one.name) ?? []
  const isShown = key.length > 0 && key.every((column) => columns.includes(column))
  return isShown ? { key, isKey: true } : { key: columns.slice(0, 1), isKey: table === undefined }
}

function tableDifferences(
  run: Run,
  other: Run,
  serial: Failure['serial'],
  known: readonly KnownTable[],
): TableDifference[] {
  const schemas = new Set(run.tables.map(({ name }) => name.slice(0, name.indexOf('.'))))
  const schema = schemas.size === 1 ? [...schemas].join('') : 'public'
  return run.tables.flatMap((found): TableDifference[] => {
    const columns = columnsOf(found, other)
    const rowsOf = ({ tables }: Run): readonly Row[] => {
      const same = tables.find(({ name }) => name === found.name)
      return same === undefined ? [] : inColumns(same, columns)
    }
    const table = { ...found, columns, rows: inColumns(found, columns) }
    const only = (here: readonly Row[], there: readonly Row[]): Row[] => {
      const left = there.map(text)
      return here.filter((row) => {
        const at = left.indexOf(text(row))
        if (at !== -1) left.splice(at, 1)
        return at === -1
      })
    }
    const extra = only(table.rows, rowsOf(other))
    const missing = only(rowsOf(other), table.rows)
    if (extra.length === 0 && missing.length === 0) return []
    const keyed = keyOf(found.name, columns, known)
    const cells = (row: Row): Row => cellsOf({ columns, key: keyed.key }, row)
    const changed = extra.flatMap((found) => {
      const isSame = (row: Row): boolean => text(cells(row)) === text(cells(found))
      const same = cells(found).some((cell) => cell === null || /^[‹→]/.test(cell))
        ? []
        : missing.filter(isSame)
      return same.length === 1 && extra.filter(isSame).length === 1
        ? [{ found, serial: same[0] as Row }]
        : []
    })
    return [
      {
        name: table.name.startsWith(`${schema}.`)
          ? table.name.slice(schema.length + 1)
          : table.name,
        fullName: table.name,
        columns: table.columns,
        ...keyed,
        found: table.rows.length,
        serial: [...new Set(serial.map((one) => rowsOf(one.run).length))].toSorted((a, b) => a - b),
        extra: extra.filter((row) => !changed.some(({ found }) => found === row)),
        missing: missing.filter((row) => !changed.some((one) => one.serial === row)),
        changed,
      },
    ]
  })
}

/** A column that says nothing in one run is left out there, and may say something in another. */
function columnsOf(table: FinalTable, { tables }: Run): readonly string[] {
  const other = tables.find(({ name }) => name === table.name)?.columns ?? []
  const [more, fewer] =
    other.length > table.columns.length ? [other, table.columns] : [table.columns, other]
  return [...more, ...fewer.filter((column) => !more.includes(column))]
}

function inColumns({ columns, rows }: FinalTable, wanted: readonly string[]): readonly Row[] {
  const places = wanted.map((column) => columns.indexOf(column))
  return rows.map((row) => places.map((at) => (at === -1 ? '‹new›' : (row[at] ?? null))))
}

function text(row: Row): string {
  return JSON.stringify(row)
}

function outcomeDifference({ run, serial }: Failure, who: string, at: number): string[] {
  const found = outcomeOf(run, at)
  const others = [...new Set(serial.map((one) => outcomeOf(one.run, at)))]
  if (others.length === 0 || others.includes(found)) return []
  return [`${who} ${found}; one after the other it ${others.join(' or ')}`]
}

function outcomeOf({ outcomes }: Run, at: number): string {
  const outcome = outcomes[at]
  return outcome === undefined ? 'did not run' : outcomeText(outcome)
}

/** `returned 5`, `threw QuotaExceeded: 100 of 100`, … */
function outcomeText(outcome: FlowOutcome): string {
  if (outcome.kind === 'returned') {
    return outcome.value === 'undefined' ? 'returned' : `returned ${outcome.value}`
  }
  if (outcome.kind === 'threw') {
    const state = outcome.sqlstate === undefined ? '' : ` (${outcome.sqlstate})`
    // Some put a stack into their messages.
    const [message = ''] = outcome.message.split('\n', 1)
    return `threw ${outcome.name}: ${message}${state}`
  }
  return outcome.kind === 'crashed' ? 'was cut off' : 'did not end'
}
