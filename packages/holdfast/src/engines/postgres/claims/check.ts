import type { ColumnValue } from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { columnOf, type ClaimLayout, inStatus, valueText, type Waiting } from './claims.ts'
import type { TableName } from '../../../core/table-name.ts'
import { quoteIdentifier, tableText } from '../sql/identifier.ts'
import { eq, gt, minus } from '../sql/operators.ts'

/** A column as the catalogue has it. */
export interface FoundColumn {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
  /** An array or a composite type, or a domain over one: there is no one text for its value. */
  readonly compound: boolean
  /** By the role that asks. */
  readonly readable: boolean
  readonly writable: boolean
}

/**
 * The columns of the table, whether the key columns identify a row, and what the role may; no rows if it is not there.
 * For a schema that the role may not use, to_regclass would fail, already in the planner: there its table is looked up.
 */
export function describeTable({ table, key }: Waiting): Statement {
  const { schema } = table
  const found =
    schema === undefined
      ? 'pg_catalog.to_regclass($1::pg_catalog.text)'
      : `(
  SELECT "#class".oid FROM pg_catalog.pg_class AS "#class"
  JOIN pg_catalog.pg_namespace AS "#space" ON "#space".oid ${eq} "#class".relnamespace
  WHERE "#class".relname ${eq} $1::pg_catalog.text AND "#space".nspname ${eq} $3::pg_catalog.text
    AND pg_catalog.has_schema_privilege("#space".oid, 'USAGE')
)`
  const values = [schema === undefined ? tableText(table) : table.table, JSON.stringify(key)]
  return {
    text: `
SELECT "#column".attname::pg_catalog.text AS name, "#column".attnotnull::pg_catalog.text AS "notNull",
       pg_catalog.format_type("#column".atttypid, NULL) AS type,
       (SELECT ("#type".typcategory ${eq} ANY ('{A,C}'))::pg_catalog.text FROM pg_catalog.pg_type AS "#type"
        WHERE "#type".oid ${eq} "#column".atttypid) AS compound,
       EXISTS (
         SELECT FROM pg_catalog.pg_index AS "#index"
         WHERE "#index".indrelid ${eq} "#column".attrelid AND "#index".indisunique AND "#index".indisvalid
           AND "#index".indpred IS NULL AND "#index".indexprs IS NULL
           AND (SELECT pg_catalog.bool_and("#part".attname ${eq} ANY (ARRAY(
                  SELECT pg_catalog.jsonb_array_elements_text($2::pg_catalog.text::pg_catalog.jsonb))))
                FROM pg_catalog.unnest("#index".indkey[0:"#index".indnkeyatts ${minus} 1]) AS "#number"
                JOIN pg_catalog.pg_attribute AS "#part"
                  ON "#part".attrelid ${eq} "#index".indrelid AND "#part".attnum ${eq} "#number")
       )::pg_catalog.text AS "unique",
       pg_catalog.has_column_privilege("#column".attrelid, "#column".attnum, 'SELECT')::pg_catalog.text AS readable,
       pg_catalog.has_column_privilege("#column".attrelid, "#column".attnum, 'UPDATE')::pg_catalog.text AS writable,
       pg_catalog.has_table_privilege("#column".attrelid, 'DELETE')::pg_catalog.text AS deletable,
       current_user::pg_catalog.text AS role
FROM pg_catalog.pg_attribute AS "#column"
WHERE "#column".attrelid ${eq} ${found} AND "#column".attnum ${gt} 0 AND NOT "#column".attisdropped`,
    values: schema === undefined ? values : [...values, schema],
  }
}

/** From here on the planner uses any index that can give the rows in order, however small the table. */
export const indexesOnly: readonly string[] = [
  'SET LOCAL enable_seqscan = off',
  'SET LOCAL enable_bitmapscan = off',
  'SET LOCAL enable_sort = off',
  'SET LOCAL enable_incremental_sort = off',
]

/** One thing that the table is asked often, and the index that answers it. */
export interface Probe {
  readonly about: 'claim' | 'recover' | 'count'
  readonly explain: Statement
  readonly createIndex: string
}

/** What is asked by claims, sweeps and limits. Without row locks, which keep conditions in the plan. */
export function probesOf(
  layout: Waiting & Partial<ClaimLayout>,
  perKey: { readonly column: string; readonly limit: number | undefined } | undefined,
): Probe[] {
  const { priority, order, claimed, leaseUntil } = layout
  const first = perKey === undefined ? [] : [perKey.column]
  const ordered = [...first, ...(priority === undefined ? [] : [priority.column]), ...order]
  const probe = (about: Probe['about'], status: ColumnValue, columns: readonly string[]): Probe => {
    const terms = columns.map((column) => ({
      column,
      suffix: column === priority?.column && priority.first === 'largest' ? ' DESC' : '',
    }))
    const by = terms.map(({ column, suffix }) => `${columnOf(column)}${suffix}`).join(', ')
    return {
      about,
      // YAML is what comes as text in one piece; JSON would come as a type that clients parse.
      explain: {
        text: `EXPLAIN (FORMAT YAML) SELECT 1 FROM ${tableText(layout.table)} AS "#row"
WHERE ${inStatus(layout, status)} ORDER BY ${by} LIMIT 1`,
        values: [],
      },
      createIndex: createIndex(
        layout,
        status,
        terms.map(({ column, suffix }) => `${quoteIdentifier(column)}${suffix}`),
      ),
    }
  }
  const probes = [probe('claim', layout.pending, [...new Set(ordered)])]
  if (claimed === undefined || leaseUntil === undefined) return probes
  probes.push(probe('recover', claimed, [leaseUntil]))
  if (perKey?.limit !== undefined) probes.push(probe('count', claimed, [perKey.column]))
  return probes
}

/** Columns with a fixed value come first, the status goes into the predicate. */
function createIndex({ table, where, status }: Waiting, value: ColumnValue, by: string[]): string {
  const fixed = where.filter(([, each]) => each !== null).map(([column]) => quoteIdentifier(column))
  const predicate = [
    value === null
      ? `${quoteIdentifier(status)} IS NULL`
      : `${quoteIdentifier(status)} = ${valueText(value)}`,
    ...where
      .filter(([, each]) => each === null)
      .map(([column]) => `${quoteIdentifier(column)} IS NULL`),
  ]
  return `CREATE INDEX CONCURRENTLY ON ${tableText(table)} (${[...fixed, ...by].join(', ')}) WHERE ${predicate.join(' AND ')};`
}

/** Whether an index gives the rows in their order, and no row has to be looked at and thrown away. */
export function isServedByIndex([first]: readonly Row[]): boolean {
  const plan = first === undefined ? '' : String(Object.values(first)[0])
  // One line for each property; a text in it is written with escapes, so that none begins a line.
  const nodes = [...plan.matchAll(/^[ -]*Node Type: "([^"]*)"/gm)].map(([, type]) => type ?? '')
  return (
    nodes.some((type) => /^Index (Only )?Scan$/.test(type)) &&
    nodes.every((type) => !/Sort|Seq Scan/.test(type)) &&
    !/^ *Filter: /m.test(plan)
  )
}

/** Lets a role work on the rows of a table. */
export function grantRows(table: TableName, role: string, deletes: boolean): string {
  const rights = deletes ? 'SELECT, UPDATE, DELETE' : 'SELECT, UPDATE'
  return `GRANT ${rights} ON ${tableText(table)} TO ${quoteIdentifier(role)};`
}

/** What a role needs before it can see a table of the schema; it is for people, who know the role. */
export function usageOf(schema: string): string {
  return `GRANT USAGE ON SCHEMA ${quoteIdentifier(schema)}`
}
