import type { Failure, FlowOutcome, Run } from '../core/model.ts'
import { cut } from './shorten.ts'
import { times } from './words.ts'

type Row = readonly (string | null)[]

/** How a table differs from what the nearest serial order left. */
export interface TableDifference {
  readonly name: string
  readonly columns: readonly string[]
  readonly found: number
  /** How many rows the serial orders left: one number, unless they differ. */
  readonly serial: readonly number[]
  /** Rows that only the found state has. */
  readonly extra: readonly Row[]
  /** Rows that only the serial state has. */
  readonly missing: readonly Row[]
  /** Rows of both whose first column is the same. */
  readonly changed: readonly { readonly found: Row; readonly serial: Row }[]
}

/** A flow that ended as in no serial order. */
export interface OutcomeDifference {
  readonly who: string
  readonly found: string
  readonly serial: readonly string[]
}

export interface Difference {
  /** Names of the flows, in the serial order that comes nearest; empty if there was none. */
  readonly nearest: readonly string[]
  readonly orders: number
  readonly tables: readonly TableDifference[]
  readonly outcomes: readonly OutcomeDifference[]
}

export function differenceOf(whole: Failure, flows: readonly string[]): Difference {
  const failure = compared(whole)
  const { run, serial } = failure
  const candidates = serial.map(({ order, run: other }) => {
    const tables = tableDifferences(run, other, serial)
    const odd = run.outcomes.filter((one, at) => outcomeText(one) !== outcomeOf(other, at)).length
    const weight = tables.reduce(
      (sum, { extra, missing, changed }) => sum + extra.length + missing.length + changed.length,
      odd,
    )
    return { order, tables, weight }
  })
  const [best] = candidates.toSorted((one, other) => one.weight - other.weight)
  return {
    nearest: (best?.order ?? []).map((flow) => flows[flow] ?? '?'),
    orders: serial.length,
    tables: best?.tables ?? [],
    outcomes: flows.flatMap((who, at) => outcomeDifference(failure, who, at)),
  }
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
  const { tables, outcomes } = difference
  const [counted] = tables.filter(({ found, serial }) => !serial.includes(found))
  if (counted !== undefined) {
    const { name, found, serial } = counted
    return `${name} has ${times(found, 'row')}; after every serial order it has ${serial.join(' or ')}`
  }
  const [value] = tables.flatMap((table) => valueFault(compared(failure), table))
  const [outcome] = outcomes
  if (value !== undefined) return value
  return outcome === undefined
    ? cut(failure.message, longest)
    : `${outcome.who} ${outcome.found}; in every serial order it ${outcome.serial.join(' or ')}`
}

/** `stock A-1: qty is 4; after every serial order it is 3` */
function valueFault({ serial }: Failure, { name, columns, changed }: TableDifference): string[] {
  return changed.flatMap(({ found }) =>
    columns.flatMap((column, at): string[] => {
      const rows = serial.flatMap(({ run }) => {
        const table = run.tables.find((one) => one.name === name || one.name.endsWith(`.${name}`))
        return table?.rows.filter(([first]) => first === found[0]) ?? []
      })
      const values = [...new Set(rows.map((row) => row[at] ?? 'NULL'))]
      const here = found[at] ?? 'NULL'
      if (values.length === 0 || values.includes(here)) return []
      return [
        `${name} ${found[0]}: ${column} is ${here}; after every serial order it is ${values.join(' or ')}`,
      ]
    }),
  )
}

function tableDifferences(run: Run, other: Run, serial: Failure['serial']): TableDifference[] {
  const schemas = new Set(run.tables.map(({ name }) => name.slice(0, name.indexOf('.'))))
  const schema = schemas.size === 1 ? [...schemas].join('') : 'public'
  return run.tables.flatMap((table): TableDifference[] => {
    const rowsOf = ({ tables }: Run): readonly Row[] =>
      tables.find(({ name }) => name === table.name)?.rows ?? []
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
    const changed = extra.flatMap((found) => {
      const same = missing.filter(([first]) => first === found[0] && first !== null)
      return same.length === 1 && extra.filter(([first]) => first === found[0]).length === 1
        ? [{ found, serial: same[0] as Row }]
        : []
    })
    return [
      {
        name: table.name.startsWith(`${schema}.`)
          ? table.name.slice(schema.length + 1)
          : table.name,
        columns: table.columns,
        found: table.rows.length,
        serial: [...new Set(serial.map((one) => rowsOf(one.run).length))].toSorted((a, b) => a - b),
        extra: extra.filter((row) => !changed.some(({ found }) => found === row)),
        missing: missing.filter((row) => !changed.some((one) => one.serial === row)),
        changed,
      },
    ]
  })
}

function text(row: Row): string {
  return JSON.stringify(row)
}

function outcomeDifference({ run, serial }: Failure, who: string, at: number): OutcomeDifference[] {
  const found = outcomeOf(run, at)
  const others = [...new Set(serial.map((one) => outcomeOf(one.run, at)))]
  return others.length === 0 || others.includes(found) ? [] : [{ who, found, serial: others }]
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
