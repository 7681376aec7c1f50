import type { Driver, Executor, Transaction } from '../core/driver.ts'
import {
  describeTable,
  type FoundColumn,
  indexesOnly,
  isServedByIndex,
  probesOf,
} from '../engines/postgres/claims/check.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import type { LeaseSettings } from './layout.ts'
import { isTrue } from '../core/is-true.ts'

/** One thing about a table that is not as claims need it. */
export interface ClaimFinding {
  readonly code:
    | 'table-missing'
    | 'column-missing'
    | 'column-nullable'
    | 'column-type'
    | 'column-name'
    | 'key-type'
    | 'key-not-unique'
    | 'index-missing'
  /** What it is about: `table outbox`, `column outbox.claim_token`. */
  readonly object: string
  readonly what: string
  /** SQL to run, or a sentence where there is none. */
  readonly fix: string
}

/** Claims would not work at all; the others are slow or surprising. */
export function isHole({ code }: ClaimFinding): boolean {
  return code !== 'index-missing' && code !== 'column-type'
}

const why = {
  claim:
    'no index gives the rows to claim in their order, so every claim reads and sorts all of them.',
  recover: 'no index finds the claims whose lease is over, so every sweep reads the table.',
  count: 'no index counts the rows of a key that are in flight, so every claim reads the table.',
} as const

/** Asks the catalogue for the columns, and the planner whether it has the indexes. */
export async function checkTable<Tx>(
  driver: Driver<Tx>,
  settings: LeaseSettings,
): Promise<ClaimFinding[]> {
  return await driver.transaction(
    async (transaction) => {
      const findings = await checkColumns(transaction, settings)
      if (findings.some(isHole)) return findings
      return [...findings, ...(await checkIndexes(driver, transaction, settings))]
    },
    { scopes: [] },
  )
}

/** What the catalogue says about the columns. */
export async function checkColumns(
  executor: Executor,
  { layout, perKey }: LeaseSettings,
): Promise<ClaimFinding[]> {
  const table = layout.table.table
  const rows = await executor.query(describeTable(layout))
  if (rows.length === 0) {
    return [
      {
        code: 'table-missing' as const,
        object: `table ${table}`,
        what: 'is not there, or not in the search_path of this role.',
        fix: 'Create it, or name its schema: { schema, table }.',
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
      } satisfies FoundColumn,
    ]),
  )
  return [
    ...aboutColumns(layout, perKey?.column, columns),
    ...(isTrue(rows[0]?.['unique']) ? [] : [notUnique(table, layout.key)]),
  ]
}

/** What the planner says about the indexes. Its settings stay changed until the transaction ends. */
export async function checkIndexes<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { layout: given, perKey }: LeaseSettings,
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

function aboutColumns(
  layout: LeaseSettings['layout'],
  turn: string | undefined,
  columns: ReadonlyMap<string, FoundColumn>,
): ClaimFinding[] {
  const { maxAttempts } = layout
  const needed = [
    ...layout.key,
    layout.status,
    layout.token,
    layout.leaseUntil,
    layout.attempts,
    layout.runAt,
    layout.priority?.column,
    layout.error,
    layout.holder,
    layout.finishedAt,
    turn,
    typeof maxAttempts === 'number' ? undefined : maxAttempts.column,
    ...layout.order,
    ...layout.where.map(([column]) => column),
    ...(layout.columns ?? []),
  ].filter((column) => column !== undefined)
  const object = (column: string): string => `column ${layout.table.table}.${column}`
  const missing = [...new Set(needed)]
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
  { table, columns: selected, texts }: LeaseSettings['layout'],
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
