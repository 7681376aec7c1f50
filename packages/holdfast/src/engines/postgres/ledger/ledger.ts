import type { Scope } from '../../../core/bucket.ts'
import type { Statement, Value } from '../../../core/driver.ts'
import { blockerColumns } from '../tx/activity.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { isMarked } from '../tx/join-marker.ts'
import { eq } from '../sql/operators.ts'

/** How many parameters the functions take; the types are the functions'. */
export const columnsOfMany = 21
export const columnsOfPlain = 14
const valuesOfOne = 17

function placeholders(count: number): string {
  return Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')
}

/** The entrances to the ledger of one schema: any lines, many plain ones, one plain one. */
export interface LedgerCalls {
  /** One array literal per parameter of `apply_plain`, which leaves out what is not plain. */
  plain(columns: readonly (string | null)[], scopes: readonly Scope[]): Statement
  /** One array literal per parameter of `apply`. */
  many(columns: readonly (string | null)[], scopes: readonly Scope[]): Statement
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

export function ledgerCalls(schema: string, where: Where): LedgerCalls {
  const name = quoteIdentifier(schema)
  const statement = (
    call: string,
    label: string,
  ): ((values: readonly Value[], scopes: readonly Scope[]) => Statement) => {
    const answers: Readonly<Record<Where, string>> = {
      alone: `CASE WHEN pg_catalog.set_config('lock_timeout', '${sharedLockMs}', true) IS NOT NULL THEN ${call} END`,
      joined: call,
      marked: `CASE WHEN ${isMarked} THEN ${call} END`,
    }
    const text = `SELECT ${answers[where]} AS answer, pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`
    return (values, scopes) => ({
      text,
      values,
      scopes,
      columns,
      name: `ledger_${label}_${where}`,
    })
  }
  // No casts: there is one function of that name, and each cast would be looked up in every call.
  return {
    plain: statement(`${name}.apply_plain(${placeholders(columnsOfPlain)})`, 'plain'),
    many: statement(`${name}.apply(${placeholders(columnsOfMany)})`, 'many'),
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

/** An array as PostgreSQL reads it, put together element by element. */
export class ArrayLiteral {
  #elements = ''
  #empty = true
  #used = false

  /** A number, a UUID or another value that needs no quotes. */
  plain(value: string | number | undefined): void {
    this.#add(value === undefined ? undefined : `${value}`)
  }

  text(value: string | undefined): void {
    this.#add(
      value === undefined
        ? undefined
        : special.test(value)
          ? `"${value.replaceAll(/["\\]/g, '\\$&')}"`
          : `"${value}"`,
    )
  }

  /** Null if no element has a value: a column of nulls. */
  literal(): string | null {
    return this.#used ? `{${this.#elements}}` : null
  }

  #add(element: string | undefined): void {
    if (element !== undefined) this.#used = true
    this.#elements += this.#empty ? (element ?? 'NULL') : `,${element ?? 'NULL'}`
    this.#empty = false
  }
}

const special = /["\\]/
