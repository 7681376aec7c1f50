import type { OverTable } from '../../../claims/engine.ts'
import type { Executor } from '../../../core/driver.ts'
import { quoteIdentifier, tableText } from '../sql/text.ts'
import { columnOf, inStatus, tableOf, valueText } from './layout.ts'
import { momentKind, msOf } from './moments.ts'
import { type TableFacts, tableFacts } from './table-facts.ts'
import type { ClaimFinding } from '../../../core/errors/error-details.ts'

type Layout = OverTable['layout']

/** What keeps claims from working at all. */
export async function checkUse(on: Executor, settings: OverTable): Promise<ClaimFinding[]> {
  const facts = await tableFacts(on, settings.layout.table)
  return holesIn(facts, settings)
}

/** And what would make them slow or surprising. */
export async function checkTable(on: Executor, settings: OverTable): Promise<ClaimFinding[]> {
  const facts = await tableFacts(on, settings.layout.table)
  const holes = holesIn(facts, settings)
  if (holes.length > 0) return holes
  return [
    ...(await aboutKeys(on, settings.layout)),
    ...(await aboutMoments(on, facts, settings.layout)),
    ...(await aboutIndexes(on, facts, settings)),
  ]
}

function holesIn({ columns, unique }: TableFacts, { layout, perKey }: OverTable): ClaimFinding[] {
  const { table } = layout.table
  if (columns.size === 0) {
    const fix = 'Create it, or name the right one.'
    return [{ code: 'table-missing', object: `table ${table}`, what: 'is not there.', fix }]
  }
  const object = (column: string): string => `column ${table}.${column}`
  const needed = [...new Set(neededBy(layout, perKey?.column))]
  const missing = needed.filter((column) => !columns.has(column))
  const nullable = [perKey?.column, layout.runAt, layout.priority?.column].filter(
    (column) => column !== undefined && columns.get(column)?.notNull === false,
  ) as readonly string[]
  const turn = perKey === undefined ? [] : [perKey.column]
  const untyped = [...new Set([...layout.key, ...turn])].filter((column) => {
    const type = columns.get(column)?.type
    return type !== undefined && (type === '' || /BLOB/i.test(type))
  })
  const read = layout.columns === undefined && layout.texts === undefined ? [...columns.keys()] : []
  const named = [...new Set([...needed, ...read])].filter((column) => column.startsWith('#'))
  const isUnique = unique.some((by) => by.every((column) => layout.key.includes(column)))
  return [
    ...missing.map(
      (column): ClaimFinding => ({
        code: 'column-missing',
        object: object(column),
        what: 'is not there.',
        fix: 'Add it, or say under columns what it is called.',
      }),
    ),
    ...nullable.map(
      (column): ClaimFinding => ({
        code: 'column-nullable',
        object: object(column),
        what: 'may be null, and a row without it would never be claimed.',
        fix: 'Make it NOT NULL.',
      }),
    ),
    ...untyped.map(
      (column): ClaimFinding => ({
        code: 'key-type',
        object: object(column),
        what: 'has no type by which SQLite compares a text with its values.',
        fix: 'Declare it as INTEGER or TEXT.',
      }),
    ),
    ...named.map(
      (column): ClaimFinding => ({
        code: 'column-name',
        object: object(column),
        what: 'begins with #, as names in our statements do.',
        fix: needed.includes(column) ? 'Rename it.' : 'Name the columns to be read with select.',
      }),
    ),
    ...(isUnique
      ? []
      : [
          {
            code: 'key-not-unique',
            object: `table ${table}`,
            what: `no unique index says that ${layout.key.join(', ')} identifies a row.`,
            fix: 'Name the columns of the primary key as key.',
          } as const,
        ]),
  ]
}

function neededBy(layout: Layout, turn: string | undefined): string[] {
  const { maxAttempts } = layout
  const most = typeof maxAttempts === 'object' ? maxAttempts.column : undefined
  const all = [
    ...layout.key,
    ...layout.order,
    ...layout.where.map(([column]) => column),
    ...(layout.columns ?? []),
    ...(layout.texts ?? []),
    layout.status,
    layout.runAt,
    layout.priority?.column,
    layout.token,
    layout.leaseUntil,
    layout.attempts,
    layout.holder,
    layout.error,
    layout.finishedAt,
    most,
    turn,
  ]
  return all.filter((column) => column !== undefined)
}

/** Keys by which no row is found again. */
async function aboutKeys(on: Executor, layout: Layout): Promise<ClaimFinding[]> {
  const findings: ClaimFinding[] = []
  for (const name of layout.key) {
    const column = columnOf(name)
    const strange = `(${column} IS NULL OR typeof(${column}) = 'blob' OR instr(CAST(${column} AS BLOB), x'00') > 0)`
    const text = `SELECT 1 FROM ${tableOf(layout)} WHERE ${inStatus(layout, layout.pending)} AND ${strange} LIMIT 1`
    if ((await on.query({ text, values: [] })).length === 0) continue
    findings.push({
      code: 'column-type',
      object: `column ${layout.table.table}.${name}`,
      what: 'has values that are NULL, binary or contain NUL; such rows are never claimed.',
      fix: 'Give these rows another key.',
    })
  }
  return findings
}

/** Moments that nobody could read: such a row is never due. */
async function aboutMoments(
  on: Executor,
  { columns }: TableFacts,
  layout: Layout,
): Promise<ClaimFinding[]> {
  const { runAt, table } = layout
  if (runAt === undefined) return []
  const column = columnOf(runAt)
  const kind = momentKind(columns.get(runAt)?.type ?? '')
  const strange = kind === 'number' ? `typeof(${column}) = 'text'` : `${msOf(column)} IS NULL`
  const text = `SELECT 1 FROM ${tableOf(layout)} WHERE ${inStatus(layout, layout.pending)} AND ${strange} LIMIT 1`
  if ((await on.query({ text, values: [] })).length === 0) return []
  const wanted =
    kind === 'number' ? 'milliseconds or seconds since 1970' : "text such as '2030-01-31 12:00:00'"
  return [
    {
      code: 'column-type',
      object: `column ${table.table}.${runAt}`,
      what: 'has values that are no moment for a column of its type; such rows are never claimed.',
      fix: `Write ${wanted}.`,
    },
  ]
}

/** What is asked often, and the index that answers it. */
async function aboutIndexes(
  on: Executor,
  { partial }: TableFacts,
  { layout, perKey }: OverTable,
): Promise<ClaimFinding[]> {
  const { claimed, leaseUntil, priority, order } = layout
  const turn = perKey === undefined ? [] : [perKey.column]
  const ordered = [...turn, ...(priority === undefined ? [] : [priority.column]), ...order]
  const probes: (readonly [what: string, status: typeof layout.pending, by: readonly string[]])[] =
    [['claims read and sort all rows that wait', layout.pending, [...new Set(ordered)]]]
  if (claimed !== undefined && leaseUntil !== undefined)
    probes.push(['looking for leases that are over reads all rows', claimed, [leaseUntil]])
  if (claimed !== undefined && perKey?.limit !== undefined)
    probes.push(['counting rows in flight reads all rows', claimed, turn])
  const findings: ClaimFinding[] = []
  for (const [what, status, by] of probes) {
    const suffix = (column: string): string =>
      column === priority?.column && priority.first === 'largest' ? ' DESC' : ''
    const sorted = by.map((column) => `${columnOf(column)}${suffix(column)}`).join(', ')
    const text = `EXPLAIN QUERY PLAN SELECT 1 FROM ${tableOf(layout)} WHERE ${inStatus(layout, status)} ORDER BY ${sorted} LIMIT 1`
    const plan = (await on.query({ text, values: [] })).map(({ detail }) => String(detail))
    if (isServed(plan, partial)) continue
    const columns = by.map((column) => `${quoteIdentifier(column)}${suffix(column)}`)
    findings.push({
      code: 'index-missing',
      object: `table ${layout.table.table}`,
      what: `has no index for it: ${what}.`,
      fix: createIndex(layout, status, columns),
    })
  }
  return findings
}

/** Whether an index gives the rows in their order, and none has to be looked at and thrown away. */
function isServed(plan: readonly string[], partial: ReadonlySet<string>): boolean {
  if (plan.some((detail) => detail.includes('TEMP B-TREE'))) return false
  return plan.some((detail) => {
    const index = / USING (?:COVERING )?INDEX (.*?)(?: \(|$)/.exec(detail)?.[1]
    return index !== undefined && (detail.startsWith('SEARCH') || partial.has(index))
  })
}

/** Columns with a fixed value come first, the status goes into the predicate. */
function createIndex(
  { table, where, status }: Layout,
  value: Layout['pending'],
  by: readonly string[],
): string {
  const fixed = where.filter(([, each]) => each !== null).map(([column]) => quoteIdentifier(column))
  const isNull = (column: string): string => `${quoteIdentifier(column)} IS NULL`
  const predicate = [
    value === null ? isNull(status) : `${quoteIdentifier(status)} = ${valueText(value)}`,
    ...where.filter(([, each]) => each === null).map(([column]) => isNull(column)),
  ]
  const name = quoteIdentifier(`${table.table}_${String(value ?? 'waiting')}_claims`)
  const on = quoteIdentifier(table.table)
  const index =
    table.schema === undefined
      ? name
      : tableText({ schema: table.schema, table: `${table.table}_claims` })
  return `CREATE INDEX ${index} ON ${on} (${[...fixed, ...by].join(', ')}) WHERE ${predicate.join(' AND ')};`
}
