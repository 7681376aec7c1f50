import type { Scope } from '../../core/bucket.ts'
import type { Statement, Value } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'
import { isMarked } from './join-marker.ts'

/** A parameter: its type in SQL and the value, which is sent as text. */
export type Argument = readonly [
  type: 'text' | 'uuid' | 'integer' | 'bigint' | 'boolean' | 'jsonb' | 'timestamptz',
  value: Value,
]

/** A call of one of our functions that answers one text, in a column `answer`. */
export interface FunctionCall {
  /** Does it, whatever transaction it is in. */
  readonly plain: Statement
  /** Does nothing and answers null unless `joinMarker` came before it in the same transaction. */
  readonly marked: Statement
}

/**
 * `schema.name(…)`; every placeholder carries its cast, so that every client binds the same. Without
 * `scopes` it concerns a whole server.
 */
export function functionCall(
  schema: string,
  name: string,
  args: readonly Argument[],
  scopes?: readonly Scope[],
): FunctionCall {
  const list = args.map(([type], at) => `$${at + 1}::text${type === 'text' ? '' : `::${type}`}`)
  const call = `${quoteIdentifier(schema)}.${name}(${list.join(', ')})::text`
  const values = args.map(([, value]) => (value === null ? null : String(value)))
  const pid = 'pg_catalog.pg_backend_pid() AS pid'
  const columns = ['answer', 'pid']
  const touched = scopes === undefined ? {} : { scopes }
  return {
    plain: { text: `SELECT ${call} AS answer, ${pid}`, values, columns, name, ...touched },
    marked: {
      text: `SELECT CASE WHEN ${isMarked} THEN ${call} END AS answer, ${pid}`,
      values,
      columns,
      name: `${name}_joined`,
      ...touched,
    },
  }
}
