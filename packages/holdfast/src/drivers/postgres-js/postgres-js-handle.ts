import type { Row, TransactionState } from '../../core/driver.ts'

/** The part of a postgres.js transaction handle we use. */
export interface PostgresJsHandle {
  unsafe(
    text: string,
    values?: unknown[],
    options?: { readonly prepare?: boolean },
  ): PromiseLike<readonly unknown[]>
  savepoint(body: (inner: unknown) => Promise<unknown>): Promise<unknown>
}

/**
 * Only a handle inside a transaction has `savepoint`; `sql` itself and what `reserve()` gives have
 * not. Whether that transaction is still open, postgres.js does not know: after COMMIT the handle
 * sends to a connection that may serve anybody.
 */
export function postgresJsState(handle: unknown): TransactionState {
  const { savepoint } = handle as { readonly savepoint?: unknown }
  return typeof savepoint === 'function' ? 'unknown' : 'none'
}

/**
 * With `transform: postgres.camel` and its like, raw results come back with other column names, and
 * no query can opt out. Rows keep those names and answer to the database's as well.
 */
export function databaseNames(sql: unknown): (row: Row) => Row {
  const { options } = sql as {
    readonly options?: { readonly transform?: { readonly column?: { readonly from?: unknown } } }
  }
  const rename = options?.transform?.column?.from
  if (typeof rename !== 'function') return (row) => row
  const renamed = rename as (column: string) => string
  return (row) =>
    new Proxy(row, {
      get: (target, column): unknown =>
        typeof column === 'string' && !(column in target)
          ? target[renamed(column)]
          : Reflect.get(target, column),
    })
}
