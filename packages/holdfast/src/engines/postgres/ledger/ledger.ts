import type { Scope } from '../../../core/bucket.ts'
import type { Statement, Value } from '../../../core/driver.ts'
import { blockerColumns } from '../tx/activity.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { isMarked } from '../tx/join-marker.ts'
import { eq } from '../sql/operators.ts'
import { columnsOfNew, type NewLine, NewLinesStatement } from './new-lines.ts'

/** How many parameters the functions take; the types are the functions'. */
export const columnsOfMany = 21
export const columnsOfPlain = 14
const valuesOfOne = 17
const valuesOfDebit = 7

function placeholders(count: number): string {
  return Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')
}

/** The entrances to the ledger of one schema: any lines, many plain ones, one plain one. */
export interface LedgerCalls {
  /** For `apply_new`, whose ids nobody knows yet. */
  fresh(lines: readonly NewLine[]): Statement
  /** One array literal per parameter of `apply_plain`, which leaves out what is not plain. */
  plain(columns: readonly (string | null)[], scopes: readonly Scope[]): Statement
  /** One array literal per parameter of `apply`. */
  many(columns: readonly (string | null)[], scopes: readonly Scope[]): Statement
  /** One value per parameter of `apply_debit`. */
  debit(values: readonly Value[], scopes: readonly Scope[]): Statement
  /** One value per parameter of `apply_one`. */
  one(values: readonly Value[], scopes: readonly Scope[]): Statement
}

const columns = ['answer', 'pid']

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
  const called = (call: string, label: string): Called => {
    const answers: Readonly<Record<Where, string>> = {
      alone: `CASE WHEN pg_catalog.set_config('lock_timeout', '${sharedLockMs}', true) IS NOT NULL THEN ${call} END`,
      joined: call,
      marked: `CASE WHEN ${isMarked} THEN ${call} END`,
    }
    const text = `SELECT ${answers[where]} AS answer, pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`
    return { text, columns, name: `ledger_${label}_${where}` }
  }
  const statement = (
    call: string,
    label: string,
  ): ((values: readonly Value[], scopes: readonly Scope[]) => Statement) => {
    const how = called(call, label)
    return (values, scopes) => ({ ...how, values, scopes })
  }
  const fresh = called(`${name}.apply_new(${placeholders(columnsOfNew)})`, 'new')
  // No casts: there is one function of that name, and each cast would be looked up in every call.
  return {
    fresh: (lines) => new NewLinesStatement(fresh, lines),
    plain: statement(`${name}.apply_plain(${placeholders(columnsOfPlain)})`, 'plain'),
    many: statement(`${name}.apply(${placeholders(columnsOfMany)})`, 'many'),
    debit: statement(`${name}.apply_debit(${placeholders(valuesOfDebit)})`, 'debit'),
    one: statement(`${name}.apply_one(${placeholders(valuesOfOne)})`, 'one'),
  }
}

/** The accounts of lines, as one array literal per parameter. */
export type LineColumns = readonly (string | null)[]

/** Which of the lines are about an account that is locked, and by which transaction: `line:transaction`. */
export function lockedLines(
  schema: string,
  lines: LineColumns,
  scopes: readonly Scope[],
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.locked_lines(${placeholders(lines.length)}) AS answer`,
    values: lines,
    scopes,
  }
}

/** Who has locked them. */
export function accountLockers(
  schema: string,
  lines: LineColumns,
  scopes: readonly Scope[],
): Statement {
  return {
    text: `SELECT ${blockerColumns} FROM pg_catalog.pg_stat_activity AS a
      WHERE a.pid ${eq} ANY ((SELECT ${quoteIdentifier(schema)}.account_lockers(${placeholders(lines.length)}))::pg_catalog.int4[])`,
    values: lines,
    scopes,
  }
}
