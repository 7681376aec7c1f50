import type { Scope } from '../../../core/bucket.ts'
import type { Statement, Value } from '../../../core/driver.ts'
import { blockerColumns } from '../tx/activity.ts'
import { type ArrayColumns, type ColumnsCall, columnsCall } from '../sql/array-columns.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import type { ParameterType } from '../sql/parameter.ts'
import { isMarked } from '../tx/join-marker.ts'
import { eq } from '../sql/operators.ts'
import { columnsOfNew, type NewLine, NewLinesStatement } from './new-lines.ts'

/** The parameters of `apply`, `apply_plain`, and of what looks at accounts, in their order. */
// biome-ignore format: a line for each would hide the order.
const typesOfMany: readonly ParameterType[] = [
  'int4[]', 'int2[]', 'uuid[]', 'uuid[]', 'uuid[]', 'text[]', 'int2[]', 'text[]', 'text[]', 'text[]', 'int8[]',
  'int8[]', 'int4[]', 'int2[]', 'text[]', 'text[]', 'text[]', 'int8[]', 'int8[]', 'text[]', 'text[]',
]
// biome-ignore format: a line for each would hide the order.
const typesOfPlain: readonly ParameterType[] = [
  'int2[]', 'uuid[]', 'uuid[]', 'uuid[]', 'text[]', 'int2[]', 'int8[]', 'int8[]', 'int4[]', 'text[]', 'text[]',
  'text[]', 'int8[]', 'text[]',
]
const typesOfLines: readonly ParameterType[] = ['int2[]', 'uuid[]', 'text[]', 'text[]', 'text[]']

export const columnsOfMany: number = typesOfMany.length
export const columnsOfPlain: number = typesOfPlain.length
/** How many parameters the others take; the types are the functions'. */
const valuesOfOne = 17
const valuesOfDebit = 7

function placeholders(count: number): string {
  return Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')
}

/** The entrances to the ledger of one schema: any lines, many plain ones, one plain one. */
export interface LedgerCalls {
  /** For `apply_new`, whose ids nobody knows yet. */
  fresh(lines: readonly NewLine[]): Statement
  /** The parameters of `apply_plain`, which leaves out what is not plain. */
  plain(columns: ArrayColumns, scopes: readonly Scope[]): Statement
  /** The parameters of `apply`. */
  many(columns: ArrayColumns, scopes: readonly Scope[]): Statement
  /** One value per parameter of `apply_debit`. */
  debit(values: readonly Value[], scopes: readonly Scope[]): Statement
  /** One value per parameter of `apply_one`. */
  one(values: readonly Value[], scopes: readonly Scope[]): Statement
}

const columns = ['answer', 'pid']
const mixedColumns = [...columns, 'restored']

/**
 * How long a call that callers share waits for one account. Long enough for everybody else's calls, which are over in
 * milliseconds; whoever keeps it longer has it in a transaction of their own.
 */
const sharedLockMs = 200

/** Where the calls run. */
type Where =
  /** In a transaction of their own, with a limit for each lock. */
  | 'alone'
  /** In the caller's, which is known to be open. */
  | 'joined'
  /** In the caller's: they do nothing and answer null unless `joinMarker` came just before. */
  | 'marked'

/** A statement without its values. */
type Called = Required<Pick<Statement, 'text' | 'columns' | 'name'>>

export function ledgerCalls(schema: string, where: Where): LedgerCalls {
  const name = quoteIdentifier(schema)
  const called = (call: string, label: string, columnsCalled?: ColumnsCall): Called => {
    const answers: Readonly<Record<Where, string>> = {
      alone: `CASE WHEN pg_catalog.set_config('lock_timeout', '${sharedLockMs}', true) IS NOT NULL THEN ${call} END`,
      joined: call,
      marked: `CASE WHEN ${isMarked} THEN ${call} END`,
    }
    const { restored = '', from = '' } = columnsCalled ?? {}
    const text = `SELECT ${answers[where]} AS answer, pg_catalog.pg_backend_pid()::pg_catalog.text AS pid${restored}${from}`
    return {
      text,
      columns: restored === '' ? columns : mixedColumns,
      name: `ledger_${label}_${where}`,
    }
  }
  const statement = (
    call: string,
    label: string,
  ): ((values: readonly Value[], scopes: readonly Scope[]) => Statement) => {
    const how = called(call, label)
    return (values, scopes) => ({ ...how, values, scopes })
  }
  const ofColumns = (
    functionName: string,
    label: string,
    types: readonly ParameterType[],
  ): ((columns: ArrayColumns, scopes: readonly Scope[]) => Statement) => {
    const [even, mixed] = [false, true].map((isMixed) => {
      const how = columnsCall(types, isMixed)
      const call = `${name}.${functionName}(${how.args})`
      return called(call, isMixed ? `${label}_mixed` : label, how)
    }) as [Called, Called]
    return ({ values, isMixed }, scopes) => ({ ...(isMixed ? mixed : even), values, scopes })
  }
  const fresh = called(`${name}.apply_new(${placeholders(columnsOfNew)})`, 'new')
  return {
    fresh: (lines) => new NewLinesStatement(fresh, lines),
    plain: ofColumns('apply_plain', 'plain', typesOfPlain),
    many: ofColumns('apply', 'many', typesOfMany),
    // No casts, as in `columnsCall`.
    debit: statement(`${name}.apply_debit(${placeholders(valuesOfDebit)})`, 'debit'),
    one: statement(`${name}.apply_one(${placeholders(valuesOfOne)})`, 'one'),
  }
}

/** Which of the lines are about an account that is locked, and by which transaction: `line:transaction`. */
export function lockedLines(
  schema: string,
  lines: ArrayColumns,
  scopes: readonly Scope[],
): Statement {
  const { args, restored, from } = columnsCall(typesOfLines, lines.isMixed)
  return {
    text: `SELECT ${quoteIdentifier(schema)}.locked_lines(${args}) AS answer${restored}${from}`,
    values: lines.values,
    scopes,
  }
}

/** Who has locked them. */
export function accountLockers(
  schema: string,
  lines: ArrayColumns,
  scopes: readonly Scope[],
): Statement {
  const { args, from } = columnsCall(typesOfLines, lines.isMixed)
  return {
    text: `SELECT ${blockerColumns} FROM pg_catalog.pg_stat_activity AS a
      WHERE a.pid ${eq} ANY ((SELECT ${quoteIdentifier(schema)}.account_lockers(${args})${from})::pg_catalog.int4[])`,
    values: lines.values,
    scopes,
  }
}
