import type { Statement } from '../../../core/driver.ts'
import { eq, minus, times } from '../sql/operators.ts'

/** What plans of whole tables are made of. */
const ways = [
  'seqscan',
  'bitmapscan',
  'sort',
  'hashjoin',
  'mergejoin',
  'material',
  'memoize',
] as const

/** As a column of a statement, for the rest of the transaction; named after the setting. */
function setting(name: string, value: string): string {
  return `pg_catalog.set_config('${name}', '${value}', true) AS ${name}`
}

/**
 * Settings by which names and numbers are written and plans are made, as columns: whoever reads the answers relies on
 * these and not on what the session has.
 */
export const plainly: readonly string[] = [
  setting('quote_all_identifiers', 'off'),
  setting('extra_float_digits', '1'),
  // Compiling a question takes longer than answering it.
  setting('jit', 'off'),
]

/**
 * The first statement of a look: from here on this transaction can change nothing, and no statement of it
 * may take longer. With `byIndex` the planner follows indexes from row to row: every question about our
 * tables is bounded, and a plan that reads one of them whole would be for more rows than are wanted. All of
 * it ends with the transaction.
 */
export function lookOnly(statementTimeoutMs: number, byIndex = false): Statement {
  const settings = [
    ...plainly,
    ...ways.map((way) => setting(`enable_${way}`, byIndex ? 'off' : 'on')),
  ]
  return {
    text: `SELECT pg_catalog.pg_backend_pid()::pg_catalog.text AS pid,
  pg_catalog.set_config('transaction_read_only', 'on', true) AS "readOnly",
  pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true) AS patience,
  ${settings.join(',\n  ')}`,
    values: [String(statementTimeoutMs)],
    name: byIndex ? 'observe_look_by_index' : 'observe_look_only',
    columns: [
      'pid',
      'readOnly',
      'patience',
      ...settings.map((column) => column.replace(/.* AS /, '')),
    ],
  }
}

/** A timestamptz as the ISO text that JavaScript writes, to the microsecond; null stays null. */
export function isoText(moment: string): string {
  return `pg_catalog.to_char(${moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

/** From one moment to another in milliseconds, rounded down to whole ones. */
export function millisecondsText(from: string, to: string): string {
  return `pg_catalog.floor(1000 ${times} extract(epoch FROM ${to} ${minus} ${from}))::pg_catalog.int8`
}

/** Whether this role can read a view of the schema named by `$1`; false where there is none. */
export function mayRead(view: string): string {
  return `EXISTS (
    SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid ${eq} c.relnamespace
    WHERE n.nspname ${eq} $1::pg_catalog.text AND c.relname ${eq} '${view}' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
      AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))`
}
