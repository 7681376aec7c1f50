import type { Scope } from '../../core/bucket.ts'
import type { Statement, Value } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'
import { isMarked } from './join-marker.ts'

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

/** With `joined`, the calls do nothing and answer null unless `joinMarker` came just before. */
export function ledgerCalls(schema: string, joined = false): LedgerCalls {
  const name = quoteIdentifier(schema)
  const statement = (
    call: string,
    label: string,
  ): ((values: readonly Value[], scopes: readonly Scope[]) => Statement) => {
    const answer = joined ? `CASE WHEN ${isMarked} THEN ${call} END` : call
    const text = `SELECT ${answer} AS answer, pg_catalog.pg_backend_pid() AS pid`
    return (values, scopes) => ({
      text,
      values,
      scopes,
      columns,
      name: `ledger_${label}${joined ? '_joined' : ''}`,
    })
  }
  // No casts: there is one function of that name, and each cast would be looked up in every call.
  return {
    plain: statement(`${name}.apply_plain(${placeholders(columnsOfPlain)})`, 'plain'),
    many: statement(`${name}.apply(${placeholders(columnsOfMany)})`, 'many'),
    one: statement(`${name}.apply_one(${placeholders(valuesOfOne)})`, 'one'),
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
