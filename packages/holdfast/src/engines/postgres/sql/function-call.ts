import type { Scope } from '../../../core/bucket.ts'
import type { Statement, Value } from '../../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'
import { isMarked } from '../tx/join-marker.ts'
import { parameter, parameters, type ParameterType } from './parameter.ts'
import { limitNumbers, type LimitRequest, shortestLimitMs } from '../tx/wait-limit.ts'

/** A parameter: its type in SQL and the value, which is sent as text. */
export type Argument = readonly [type: ParameterType, value: Value]

/** A call of one of our functions that answers one text, in a column `answer`. */
export interface FunctionCall {
  /** Does it, whatever transaction it is in. */
  readonly plain: Statement
  /** Does nothing and answers null unless `joinMarker` came before it in the same transaction. */
  readonly marked: Statement
}

/**
 * `schema.name(…)`; every placeholder carries its cast, so that every client binds the same. Without
 * `scopes` it concerns a whole server. With a `limit` it waits no longer than that for any one lock.
 */
export function functionCall(
  schema: string,
  name: string,
  args: readonly Argument[],
  scopes?: readonly Scope[],
  limit?: LimitRequest,
): FunctionCall {
  const call = `${quoteIdentifier(schema)}.${name}(${parameters(args.map(([type]) => type))})::pg_catalog.text`
  const values = args.map(([, value]) => (value === null ? null : String(value)))
  const [limited, restored] = limit === undefined ? ['', ''] : limitText(limit, args.length + 1)
  if (limit !== undefined) {
    values.push(...limitNumbers(limit))
    name = `${name}_limited${limit.yields ? '_y' : ''}${limit.limitMs === undefined ? '' : '_l'}${limit.budgetMs === undefined ? '' : '_b'}`
  }
  const pid = 'pg_catalog.pg_backend_pid()::pg_catalog.text AS pid'
  const columns = ['answer', 'pid']
  const touched = scopes === undefined ? {} : { scopes }
  return {
    plain: {
      text: `SELECT ${call} AS answer, ${pid}${restored}${limited}`,
      values,
      columns,
      name,
      ...touched,
    },
    marked: {
      text: `SELECT CASE WHEN ${isMarked} THEN ${call} END AS answer, ${pid}${restored}${limited}`,
      values,
      columns,
      name: `${name}_joined`,
      ...touched,
    },
  }
}

/** The same call, given up if there is no connection for it in time. */
export function connectingWithin({ plain, marked }: FunctionCall, ms: number): FunctionCall {
  return { plain: { ...plain, connectWithinMs: Math.max(1, ms) }, marked }
}

/**
 * What sets lock_timeout before the call and puts it back after it: FROM is evaluated before the columns,
 * OFFSET keeps it a step of its own, and columns are evaluated from left to right.
 */
function limitText(limit: LimitRequest, first: number): readonly [from: string, column: string] {
  const current = "pg_catalog.current_setting('lock_timeout')"
  const ms = shortestLimitMs(limit, (at) => parameter(first + at, 'int8'), current)
  return [
    ` FROM (SELECT ${current} AS saved, pg_catalog.set_config('lock_timeout', ${ms}::pg_catalog.text, true) AS set OFFSET 0) AS limited`,
    ", pg_catalog.set_config('lock_timeout', limited.saved, true) AS restored",
  ]
}
