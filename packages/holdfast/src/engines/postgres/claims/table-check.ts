import type { OverTable } from '../../../claims/engine.ts'
import { isHole } from '../../../core/errors/claim-finding.ts'
import type { Driver, Executor, Row, Transaction } from '../../../core/driver.ts'
import { isTrue } from '../../../core/is-true.ts'
import { withOperators } from '../sql/own-operators.ts'
import {
  describeTable,
  type FoundColumn,
  grantRows,
  indexesOnly,
  isServedByIndex,
  probesOf,
  usageOf,
} from './check.ts'
import type { ClaimFinding } from '../../../core/errors/error-details.ts'

const why = {
  claim:
    'no index gives the rows to claim in their order, so every claim reads and sorts all of them.',
  recover: 'no index finds the claims whose lease is over, so every sweep reads the table.',
  count: 'no index counts the rows of a key that are in flight, so every claim reads the table.',
} as const

/** Asks the catalogue, and then the planner whether it has the indexes. */
export async function checkTable<Tx>(
  driver: Driver<Tx>,
  settings: OverTable,
  first: typeof checkColumns = checkColumns,
): Promise<ClaimFinding[]> {
  return await driver.transaction(
    async (transaction) => {
      const findings = await first(transaction, settings)
      if (findings.some(isHole)) return findings
      return [...findings, ...(await checkIndexes(driver, transaction, settings))]
    },
    { scopes: [] },
  )
}

/** What the catalogue says about the columns, whoever asks. */
export async function checkColumns(
  executor: Executor,
  { layout, perKey }: OverTable,
): Promise<ClaimFinding[]> {
  return columnsFrom(await executor.query(describeTable(layout)), layout, perKey?.column)
}

/** The same, and whether this role may claim rows of the table. */
export async function checkUse(
  executor: Executor,
  { layout, perKey }: OverTable,
): Promise<ClaimFinding[]> {
  const rows = await executor.query(describeTable(layout))
  const about = columnsFrom(rows, layout, perKey?.column)
  return [...about, ...rightsFrom(rows, layout, perKey?.column)]
}

function columnsFrom(
  rows: readonly Row[],
  layout: OverTable['layout'],
  turn: string | undefined,
): ClaimFinding[] {
  const { table, schema } = layout.table
  if (rows.length === 0) {
    return [
      schema === undefined
        ? {
            code: 'table-missing',
            object: `table ${table}`,
            what: 'is not there, or not in the search_path of this role.',
            fix: 'Create it, or name its schema: { schema, table }.',
          }
        : {
            code: 'table-missing',
            object: `table ${schema}.${table}`,
            what: 'is not there, or in a schema that this role may not use.',
            fix: `Create it, or let this role use its schema: ${usageOf(schema)}.`,
          },
    ]
  }
  const columns = new Map(
    rows.map((row) => [
      String(row['name']),
      {
        name: String(row['name']),
        type: String(row['type']),
        notNull: isTrue(row['notNull']),
        compound: isTrue(row['compound']),
        readable: isTrue(row['readable']),
        writable: isTrue(row['writable']),
      } satisfies FoundColumn,
    ]),
  )
  return [
    ...aboutColumns(layout, turn, columns),
    ...(isTrue(rows[0]?.['unique']) ? [] : [notUnique(table, layout.key)]),
  ]
}

/** What the planner says about the indexes. Its settings stay changed until the transaction ends. */
export async function checkIndexes<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { layout: given, perKey }: OverTable,
): Promise<ClaimFinding[]> {
  const findings: ClaimFinding[] = []
  const layout = await withOperators(driver, transaction, given)
  for (const text of indexesOnly) await transaction.command(text)
  for (const { about, explain, createIndex } of probesOf(layout, perKey)) {
    if (isServedByIndex(await transaction.query(explain))) continue
    findings.push({
      code: 'index-missing',
      object: `table ${layout.table.table}`,
      what: why[about],
      fix: createIndex,
    })
  }
  return findings
}

/** Columns that claims write, and those that the options name beside them. */
function columnsOf(
  layout: OverTable['layout'],
  turn: string | undefined,
): { readonly written: readonly string[]; readonly needed: readonly string[] } {
  const { maxAttempts } = layout
  const isNamed = (column: string | undefined): column is string => column !== undefined
  const written = [
    layout.status,
    layout.token,
    layout.leaseUntil,
    layout.attempts,
    layout.runAt,
    layout.error,
    layout.holder,
    layout.finishedAt,
  ].filter(isNamed)
  const needed = [
    ...layout.key,
    ...written,
    layout.priority?.column,
    turn,
    typeof maxAttempts === 'object' ? maxAttempts.column : undefined,
    ...layout.order,
    ...layout.where.map(([column]) => column),
    ...(layout.columns ?? []),
  ].filter(isNamed)
  return { written: [...new Set(written)], needed: [...new Set(needed)] }
}

/** What this role may not do with the table, as one finding. */
function rightsFrom(
  rows: readonly Row[],
  layout: OverTable['layout'],
  turn: string | undefined,
): ClaimFinding[] {
  const { written, needed } = columnsOf(layout, turn)
  const isWhole = layout.columns === undefined && layout.texts === undefined
  const lacking = (right: string, isUsed: (name: string) => boolean): readonly string[] =>
    rows
      .filter((row) => isUsed(String(row['name'])) && !isTrue(row[right]))
      .map((row) => String(row['name']))
  const unread = lacking('readable', (name) => isWhole || needed.includes(name))
  // Rows that are only taken keep their time.
  const changed =
    layout.token === undefined ? written.filter((name) => name !== layout.runAt) : written
  const unwritten = lacking('writable', (name) => changed.includes(name))
  const deletes = layout.done === undefined
  const isKept = deletes && rows.length > 0 && !isTrue(rows[0]?.['deletable'])
  const acts = [
    ...(unread.length === 0 ? [] : [`read ${unread.join(', ')}`]),
    ...(unwritten.length === 0 ? [] : [`update ${unwritten.join(', ')}`]),
    ...(isKept ? ['delete rows'] : []),
  ]
  if (acts.length === 0) return []
  const role = String(rows[0]?.['role'])
  return [
    {
      code: 'privilege-missing',
      object: `table ${layout.table.table}`,
      what: `does not let the role ${role} ${acts.join('; ')}.`,
      fix: grantRows(layout.table, role, deletes),
    },
  ]
}

function aboutColumns(
  layout: OverTable['layout'],
  turn: string | undefined,
  columns: ReadonlyMap<string, FoundColumn>,
): ClaimFinding[] {
  const { needed } = columnsOf(layout, turn)
  const object = (column: string): string => `column ${layout.table.table}.${column}`
  const missing = needed
    .filter((column) => !columns.has(column))
    .map(
      (column): ClaimFinding => ({
        code: 'column-missing',
        object: object(column),
        what: 'is not there.',
        fix: 'Add it, or say under columns what it is called.',
      }),
    )
  // Rows without a value would never be claimed, or never have their turn.
  const nullable = [turn, layout.runAt, layout.priority?.column]
    .filter((column) => column !== undefined)
    .filter((column) => columns.get(column)?.notNull === false)
    .map(
      (column): ClaimFinding => ({
        code: 'column-nullable',
        object: object(column),
        what: 'may be null, and a row without it would never be claimed.',
        fix: 'Make it NOT NULL.',
      }),
    )
  const zoneless = [layout.leaseUntil, layout.runAt, layout.finishedAt]
    .filter((column) => column !== undefined)
    .filter((column) => columns.get(column)?.type === 'timestamp without time zone')
    .map(
      (column): ClaimFinding => ({
        code: 'column-type',
        object: object(column),
        what: 'has no time zone, so sessions in different zones disagree about it.',
        fix: 'Make it timestamptz.',
      }),
    )
  const compound = [...new Set([...layout.key, ...(turn === undefined ? [] : [turn])])]
    .filter((column) => columns.get(column)?.compound === true)
    .map(
      (column): ClaimFinding => ({
        code: 'key-type',
        object: object(column),
        what: 'is an array or a composite type, by which no row can be claimed.',
        fix: 'Use columns of a simple type, such as bigint, uuid or text.',
      }),
    )
  return [...missing, ...nullable, ...zoneless, ...compound, ...ourNames(layout, needed, columns)]
}

/** Names of our own begin so: a column of the same name could not be told from ours. */
function ourNames(
  { table, columns: selected, texts }: OverTable['layout'],
  needed: readonly string[],
  columns: ReadonlyMap<string, FoundColumn>,
): ClaimFinding[] {
  const read = selected === undefined && texts === undefined ? [...columns.keys()] : []
  return [...new Set([...needed, ...read])]
    .filter((column) => column.startsWith('#') && columns.has(column))
    .map((column) => ({
      code: 'column-name',
      object: `column ${table.table}.${column}`,
      what: 'begins with #, as names in our statements do.',
      fix: needed.includes(column) ? 'Rename it.' : 'Name the columns to be read with select.',
    }))
}

function notUnique(table: string, key: readonly string[]): ClaimFinding {
  return {
    code: 'key-not-unique',
    object: `table ${table}`,
    what: `no unique index says that ${key.join(', ')} identifies a row.`,
    fix: 'Name the columns of the primary key as key.',
  }
}
