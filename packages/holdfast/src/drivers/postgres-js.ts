import type {
  Row,
  SessionDriver,
  Statement,
  Transaction,
  TransactionState,
} from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { inNativeSavepoint } from './parts/native-savepoint.ts'
import { runInBegin } from './postgres-js/postgres-js-begin.ts'
import {
  databaseNames,
  type PostgresJsHandle,
  postgresJsState,
} from './postgres-js/postgres-js-handle.ts'
import { postgresJsListening, postgresJsSession } from './postgres-js/postgres-js-session.ts'
import { unlessHeard } from './parts/sync-wait.ts'
import { poolOf } from './parts/pool-size.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertClient as assertKind } from '../core/client-kind.ts'
import { postgres } from '../engines/postgres/engine.ts'
import { assertPrepare } from './parts/prepare-mode.ts'

/** The part of a postgres.js `sql` we use. */
export interface PostgresJsSql {
  unsafe: PostgresJsHandle['unsafe']
  begin(options: string, body: (tx: unknown) => Promise<unknown>): Promise<unknown>
}

/** The transaction handle (`TransactionSql`) of a postgres.js `sql`; of a handle, that handle. */
export type PostgresJsTransactionOf<Sql> = Sql extends {
  begin(options: string, body: (tx: infer Tx) => Promise<unknown>): unknown
}
  ? Tx
  : Sql

/** Settings of `fromPostgresJs`. */
export interface PostgresJsOptions {
  /**
   * Whether Holdfast's own statements may be prepared. `auto` does so where a connection was seen
   * to lead straight to the server, and never if your `sql` has `prepare: false`.
   * @defaultValue 'auto'
   */
  readonly prepare?: 'auto' | 'never'
  /**
   * How long the answer to a statement that is a transaction of its own is waited for. postgres.js may
   * never answer what was sent on a connection that broke; after this the outcome is unknown, and asked for
   * again where that is safe. @defaultValue '30 s'
   */
  readonly answerWithin?: Duration
}

const postgresJsOptions: KnownOptions<PostgresJsOptions> = {
  prepare: 'checked',
  answerWithin: 'checked',
}

/**
 * Holdfast on postgres.js. A caller's transaction is the handle that `sql.begin()` or
 * `tx.savepoint()` hands to its callback; `sql` itself and what `sql.reserve()` gives are not.
 *
 * @example
 * const hf = createHoldfast(fromPostgresJs(sql))
 * await sql.begin(async (tx) => { await hf.locks.acquire(tx, key) })
 */
export function fromPostgresJs<Sql extends PostgresJsSql | PostgresJsHandle>(
  sql: Sql,
  given: PostgresJsOptions = {},
): SessionDriver<PostgresJsTransactionOf<Sql>> {
  assertSql(sql)
  const options = optionsGiven(given, postgresJsOptions)
  assertPrepare(options.prepare, ['auto', 'never'])
  type Tx = PostgresJsTransactionOf<Sql>
  const run = runner(options.prepare ?? 'auto', databaseNames(sql))
  const answerMs = durationMs(options.answerWithin ?? '30 s', 'answerWithin')
  const join = (tx: Tx, state: () => TransactionState): Transaction<Tx> => {
    const handle = assertHandle(tx)
    let before: Promise<unknown> | undefined
    return {
      native: tx,
      budgetMs: undefined,
      state,
      async query(statement) {
        const answer = run(handle, statement, before)
        before = answer
        try {
          return await answer
        } finally {
          if (before === answer) before = undefined
        }
      },
      command: async (text) => {
        await handle.unsafe(text)
      },
      // Its own savepoint, and no other: postgres.js fails the whole transaction for a statement
      // that failed outside of one, also if somebody caught the error.
      nested: (body) =>
        inNativeSavepoint(
          (callback) => handle.savepoint(callback),
          (inner) => body(join(inner as Tx, state)),
        ),
    }
  }
  return {
    name: 'postgres',
    engine: postgres,
    capabilities: { pipelines: true, pool: poolOf(sql) },
    alone: {
      query: (statement) => unlessHeard(() => answered(run(sql, statement), answerMs)),
    },
    join: (tx) => join(tx, () => postgresJsState(tx)),
    async transaction(body, { isolation }) {
      if (postgresJsState(sql) !== 'none') throw holdfastError('TX_NESTED')
      if (!('begin' in sql)) throw handleInvalid('the root sql opens transactions')
      const mode = isolation === undefined ? '' : `isolation level ${isolation}`
      return runInBegin({
        open: async (callback) => sql.begin(mode, callback as (tx: unknown) => Promise<void>),
        handleOf: (native) => native as PostgresJsHandle,
        onHandle: (_, handle) => handle as Tx,
        join,
        body,
      })
    },
    session: () => postgresJsSession(sql, (handle, each) => unlessHeard(() => run(handle, each))),
    listen: (channel, heard) => postgresJsListening(sql, channel, heard),
  }
}

function assertSql(sql: unknown): void {
  const wanted = { kind: 'postgresJs', by: 'fromPostgresJs', is: 'the sql of postgres.js' } as const
  assertKind(sql, wanted, typeof (sql as Partial<PostgresJsSql> | null)?.unsafe === 'function')
}

async function answered<T>(answer: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const subject = 'the client did not answer in time'
      reject(holdfastError('COMMIT_UNKNOWN', { details: { subject, reason: 'unanswered' } }))
    }, limitMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
    // It may still come, and nobody waits for it.
    answer.catch(() => undefined)
  }
}

/** `before`: what was sent on the handle of a transaction and is not answered yet. */
type Run = (
  handle: Pick<PostgresJsHandle, 'unsafe'>,
  statement: Statement,
  before?: Promise<unknown>,
) => Promise<readonly Row[]>

/** What a result knows about its connection. */
interface Answered {
  readonly state?: { readonly pid?: number }
}

/**
 * An unprepared statement with values costs two round trips on postgres.js, a prepared one costs
 * one. A pooler invents the process id it reports; if it is the server's, nothing is in between.
 */
function runner(mode: 'auto' | 'never', named: (row: Row) => Row): Run {
  let direct = false
  return async (handle, { text, values, name }, before) => {
    const prepare = direct && name !== undefined
    const query = handle.unsafe(text, [...values], { prepare })
    const rows = (await (before === undefined
      ? query
      : unlessStuck(query, before))) as readonly Row[]
    if (!direct && name !== undefined && mode === 'auto') {
      const pid = rows[0]?.['pid']
      direct = pid !== undefined && Number(pid) === (rows as Answered).state?.pid
    }
    return rows.map(named)
  }
}

/** How long the client has to pass on a statement once the one before it is answered. */
const passedOnMs = 5_000

/**
 * On the handle of a transaction that is over, what is sent behind another statement waits in a queue that
 * nobody empties. In one that goes on, it is with the connection as soon as the other is answered.
 *
 * @throws TX_HANDLE_ENDED
 */
async function unlessStuck<T>(query: PromiseLike<T>, before: Promise<unknown>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const stuck = new Promise<never>((_, reject) => {
    const look = (): void => {
      if ((query as { readonly state?: unknown }).state === null)
        reject(holdfastError('TX_HANDLE_ENDED'))
    }
    const wait = (): void => {
      timer = setTimeout(look, passedOnMs)
    }
    before.then(wait, wait)
  })
  try {
    return await Promise.race([query, stuck])
  } finally {
    // Not before the one before it is answered: it would be set again.
    void before.catch(() => undefined).then(() => clearTimeout(timer))
  }
}

function assertHandle(tx: unknown): PostgresJsHandle {
  if (typeof tx !== 'function' || typeof (tx as Partial<PostgresJsHandle>).unsafe !== 'function') {
    throw handleInvalid('postgres.js transaction handle expected')
  }
  return tx as unknown as PostgresJsHandle
}

function handleInvalid(subject: string): Error {
  return holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
