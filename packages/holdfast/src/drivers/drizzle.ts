import type {
  Driver,
  Isolation,
  Row,
  Statement,
  Transaction,
  TransactionState,
} from '../core/driver.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { type Held, runInCallback } from './parts/callback-transaction.ts'
import type { Leash } from './parts/leash.ts'
import { inNativeSavepoint } from './parts/native-savepoint.ts'
import { ConnectionWatch, type PgConnection } from './pg/pg-connection.ts'
import { pgCancel } from './pg/pg-cancel.ts'
import { pgTransactionState } from './pg/pg-state.ts'
import { cameToRest, isBusy, leashedClient } from './pg/pg-leash.ts'
import { runInBegin } from './postgres-js/postgres-js-begin.ts'
import {
  databaseNames,
  type PostgresJsHandle,
  postgresJsState,
} from './postgres-js/postgres-js-handle.ts'
import { aloneOnTaken, noteTaken, watchRoot } from './parts/root-client.ts'
import { hearPool, unlessHeard } from './parts/sync-wait.ts'
import { poolOf } from './parts/pool-size.ts'
import { assertBeneath, assertClient as assertKind } from '../core/client-kind.ts'
import { notGiven } from '../core/options/given.ts'
import { postgres } from '../engines/postgres/engine.ts'
import { assertNoOptions } from './parts/no-options.ts'
import type { DrizzleTransactionOf } from './orm/drizzle-handle.ts'

/** The part of Drizzle's `sql` tag we use. */
export interface DrizzleSql {
  raw(text: string): unknown
  param(value: unknown): unknown
  join(chunks: unknown[]): unknown
}

/** The part of a Drizzle database or transaction we use. */
export interface DrizzleDatabase {
  execute(query: unknown): PromiseLike<unknown>
  transaction(
    body: (tx: unknown) => Promise<unknown>,
    config?: { readonly isolationLevel?: Isolation },
  ): Promise<unknown>
}

export type { DrizzleTransactionOf } from './orm/drizzle-handle.ts'

/** What a database or transaction is made of; not public, so nothing here is taken for granted. */
interface Inside {
  readonly rollback?: unknown
  readonly session?: { client?: unknown }
}

/**
 * Holdfast on Drizzle, over node-postgres or postgres-js. Drizzle's own `sql` tag is passed in, so
 * that Holdfast need not import Drizzle. A caller's transaction is what `db.transaction()` hands to
 * its callback, nested ones included.
 *
 * @example
 * import { sql } from 'drizzle-orm'
 * const hf = createHoldfast(fromDrizzle(db, sql))
 * await db.transaction(async (tx) => { await hf.locks.acquire(tx, key) })
 */
export function fromDrizzle<Db extends DrizzleDatabase>(
  db: Db,
  sql: DrizzleSql,
): Driver<DrizzleTransactionOf<Db>>
export function fromDrizzle<Db extends DrizzleDatabase>(
  db: Db,
  sql: DrizzleSql,
  given?: object,
): Driver<DrizzleTransactionOf<Db>> {
  const { execute, transaction } = (db ?? {}) as Partial<Db>
  const wanted = { kind: 'drizzle', by: 'fromDrizzle', is: 'a Drizzle database' } as const
  assertKind(db, wanted, typeof execute === 'function' && typeof transaction === 'function')
  assertBeneath(clientOf(db), 'fromDrizzle')
  assertTag(sql)
  assertNoOptions(given, 'fromDrizzle')
  type Tx = DrizzleTransactionOf<Db>
  const named = databaseNames(clientOf(db) ?? {})
  const run = async (handle: DrizzleDatabase, statement: Statement): Promise<readonly Row[]> =>
    rowsOf(await handle.execute(bound(sql, statement))).map(named)
  const join = (tx: Tx, state: () => TransactionState): Transaction<Tx> => {
    const handle = assertHandle(tx)
    return {
      native: tx,
      budgetMs: undefined,
      state,
      cancel: pgCancel(clientOf(tx)),
      query: async (statement) => run(handle, statement).catch(unwrapped),
      command: async (text) => {
        await Promise.resolve(handle.execute(sql.raw(text))).catch(unwrapped)
      },
      // Drizzle's own savepoint, because over postgres-js no other one survives a failed statement.
      nested: (body) =>
        inNativeSavepoint(
          (callback) => handle.transaction(callback),
          (inner) => body(join(inner as Tx, state)),
        ),
    }
  }
  const joined = (tx: Tx): Transaction<Tx> => join(tx, () => drizzleState(tx as DrizzleDatabase))
  const onPostgresJs = isPostgresJs(clientOf(db))
  hearPool(clientOf(db))
  const root = watchRoot(clientOf(db))
  return {
    name: 'drizzle-orm',
    engine: postgres,
    capabilities: { pool: poolOf(clientOf(db)) },
    root: () => root,
    alone: {
      query: async (statement) =>
        unlessHeard(() => asOurs(() => aloneOnTaken(() => run(db, statement)))),
    },
    join: joined,
    async transaction(body, { isolation, marked = false }) {
      if (drizzleState(db) !== 'none') throw holdfastError('TX_NESTED')
      const open = async (callback: (native: Tx) => Promise<void>): Promise<unknown> =>
        asOurs(() =>
          noteTaken({ client: undefined }, () =>
            db.transaction(
              callback as (tx: unknown) => Promise<void>,
              isolation === undefined ? undefined : { isolationLevel: isolation },
            ),
          ),
        )
      if (onPostgresJs) return runInBegin({ open, handleOf, onHandle, join, body })
      return runInCallback({ open, join: joined, body, masksCommit: true, marked, watch, hold })
    },
  }
}

/** @throws OPTION_INVALID */
function assertTag(sql: unknown): void {
  const { raw, param, join } = (sql ?? {}) as Partial<DrizzleSql>
  if ([raw, param, join].some((method) => typeof method !== 'function'))
    throw notGiven('sql', "the sql tag of Drizzle: import { sql } from 'drizzle-orm'")
}

/** Every value one parameter, however often and in whatever order the text names it. */
function bound(sql: DrizzleSql, { text, values }: Statement): unknown {
  const pieces = text.split(/\$(\d+)/)
  return sql.join(
    pieces.map((piece, at) =>
      at % 2 === 0 ? sql.raw(piece) : sql.param(values[Number(piece) - 1]),
    ),
  )
}

/** node-postgres gives a result object, postgres-js the rows themselves. */
function rowsOf(result: unknown): readonly Row[] {
  return Array.isArray(result) ? (result as Row[]) : (result as { readonly rows: Row[] }).rows
}

function clientOf(handle: unknown): unknown {
  return (handle as Inside).session?.client
}

function isPg(client: unknown): client is PgConnection {
  if (typeof client !== 'object' || client === null) return false
  return 'totalCount' in client || 'getTransactionStatus' in client
}

function isPostgresJs(client: unknown): client is PostgresJsHandle {
  return typeof client === 'function' && 'unsafe' in client
}

/** The client knows best; where it cannot be reached, only a transaction has `rollback`. */
function drizzleState(handle: DrizzleDatabase): TransactionState {
  const client = clientOf(handle)
  if (isPg(client)) return pgTransactionState(client)
  if (isPostgresJs(client)) return postgresJsState(client)
  return typeof (handle as Inside).rollback === 'function' ? 'unknown' : 'none'
}

function watch(native: unknown): ConnectionWatch | undefined {
  const client = clientOf(native)
  return isPg(client) ? new ConnectionWatch(client) : undefined
}

/** The session is made for this transaction alone, so nobody else meets the client on the leash. */
function hold<Tx>(native: Tx, leash: Leash): Held<Tx> {
  const { session } = native as Inside
  const client = session?.client
  if (session === undefined || !isPg(client)) return { native }
  session.client = leashedClient(client, leash)
  countNested(native as DrizzleDatabase, leash)
  return { native, sole: client, busy: () => isBusy(client), rest: () => cameToRest(client) }
}

/** A transaction inside of ours is under way until it is over, also while it sends nothing. */
function countNested(handle: DrizzleDatabase, leash: Leash): void {
  const { transaction } = handle
  handle.transaction = (body, ...rest) =>
    leash.during(() =>
      transaction.call(
        handle,
        (inner) => {
          countNested(inner as DrizzleDatabase, leash)
          return body(inner)
        },
        ...rest,
      ),
    )
}

function handleOf(native: unknown): PostgresJsHandle {
  return clientOf(native) as PostgresJsHandle
}

function onHandle<Tx>(native: Tx, handle: PostgresJsHandle): Tx {
  const { session } = native as Inside
  if (session !== undefined) session.client = handle
  return native
}

/** Drizzle wraps whatever a statement fails with; that a handle is over is our own word for it. */
function unwrapped(error: unknown): never {
  const { cause } = (error ?? {}) as { readonly cause?: unknown }
  throw isHoldfastError(cause, 'TX_HANDLE_ENDED') ? cause : error
}

function assertHandle(tx: unknown): DrizzleDatabase {
  const handle = tx as Partial<DrizzleDatabase> | null | undefined
  if (typeof handle?.execute !== 'function' || typeof handle.transaction !== 'function') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'Drizzle transaction expected' },
    })
  }
  return handle as DrizzleDatabase
}
