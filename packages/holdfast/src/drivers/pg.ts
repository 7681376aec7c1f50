import { bodyFailure, commitFailure } from '../core/errors/commit-failure.ts'
import type {
  BothAnswers,
  Row,
  SessionDriver,
  Statement,
  Transaction,
  TransactionSettings,
} from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { endedInside } from '../core/errors/ended-inside.ts'
import { leftOpen } from '../core/errors/left-open.ts'
import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss, isUnanswered, sqlStateOf } from '../core/sql-state.ts'
import { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
import {
  beginText,
  commitText,
  rollbackText,
  rolledBackTag,
} from '../engines/postgres/tx/transaction.ts'
import { Leash } from './parts/leash.ts'
import { sendBoth } from './pg/pg-both.ts'
import { pgCancel } from './pg/pg-cancel.ts'
import { ConnectionWatch, pgEndings } from './pg/pg-connection.ts'
import { pgTransactionState } from './pg/pg-state.ts'
import { isLeftOpen } from './pg/pg-left-open.ts'
import { cameToRest, isBusy, leashedClient } from './pg/pg-leash.ts'
import { PgOpenings } from './pg/pg-opening.ts'
import { type PgClient, PgConnects, type PgPool } from './pg/pg-pool.ts'
import { PgPrepared } from './pg/pg-prepared.ts'
import { pgListening, pgSession } from './pg/pg-session.ts'
import { bound, pipelineMessage, simpleMessage } from './pg/pg-wire.ts'
import { isWireClient, noColumns, sendOnWire } from './pg/pg-wire-query.ts'
import { poolOf } from './parts/pool-size.ts'
import { watchRoot } from './parts/root-client.ts'
import { takeAlone } from './parts/sole-client.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertClient as assertKind } from '../core/client-kind.ts'
import { postgres } from '../engines/postgres/engine.ts'
import { assertPrepare, type PrepareMode } from './parts/prepare-mode.ts'

export type { PgClient, PgPool } from './pg/pg-pool.ts'

/** The client type of a pool, read off its overloaded `connect`. */
export type PgClientOf<Pool> = Pool extends {
  connect: { (): Promise<infer Client>; (...args: never): unknown }
}
  ? Client
  : PgClient

/** Settings of `fromPg`. */
export interface PgOptions {
  /**
   * Whether statements of ours may be prepared by name: the one that opens a guard, and those that
   * run on their own and are planned longer than they run. `auto` does so on a connection that was
   * seen to lead straight to the server, and never through a pooler. `tracked` does so through a pooler too, if that
   * keeps track of names: PgBouncer does since 1.21, unless its `max_prepared_statements` is 0. Each connection is
   * asked once; through a pooler that does not, nothing is prepared.
   * @defaultValue 'auto'
   */
  readonly prepare?: PrepareMode
  /**
   * Whether calls of the ledger in transactions of yours are prepared by name too, on connections that were seen to lead
   * straight to the server. Only if nothing of yours runs `DISCARD ALL` or `DEALLOCATE` on them: a name that the server
   * has forgotten fails the call, and with it the transaction. @defaultValue false
   */
  readonly prepareJoined?: boolean
  /**
   * Longest wait for a connection of the pool. After it the call ends with POOL_STARVED, which says who
   * has them, or with CONNECTION_UNAVAILABLE if the server does not answer. @defaultValue '30 s'
   */
  readonly connectWithin?: Duration
}

const pgOptions: KnownOptions<PgOptions> = {
  prepare: 'checked',
  prepareJoined: 'boolean',
  connectWithin: 'checked',
}

/**
 * Holdfast on `pg`. Transactions are opened on clients of the pool; a caller's transaction is
 * the client on which the caller ran `BEGIN`.
 *
 * @example const hf = createHoldfast(fromPg(new Pool()))
 */
export function fromPg<Pool extends PgPool>(
  pool: Pool,
  given: PgOptions = {},
): SessionDriver<PgClientOf<Pool>> {
  assertPool(pool)
  const options = optionsGiven(given, pgOptions)
  assertPrepare(options.prepare, ['auto', 'never', 'tracked'])
  type Tx = PgClientOf<Pool>
  const openings = new PgOpenings(options.prepare ?? 'auto')
  const prepared = new PgPrepared(options.prepare ?? 'auto')
  const connects = new PgConnects(
    pool,
    durationMs(options.connectWithin ?? '30 s', 'connectWithin'),
  )
  const join = (client: PgClient, native = client): Transaction<Tx> => {
    const transaction: Transaction<Tx> = {
      native: native as Tx,
      budgetMs: undefined,
      state: () => pgTransactionState(client),
      endings: () => pgEndings(client),
      query: (statement) =>
        options.prepareJoined === true
          ? prepared.joined(client, statement, () => runStatement(client, statement))
          : runStatement(client, statement),
      cancel: pgCancel(client),
      both: (first, second) => sendBoth(client, first, second) ?? inTurn(client, first, second),
      command: async (text) => {
        await client.query(text)
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  const root = watchRoot(pool)
  return {
    name: 'pg',
    root: () => root,
    engine: postgres,
    capabilities: { connectsWithin: true, queues: true, pool: poolOf(pool) },
    alone: {
      async query(statement) {
        const client = await connects.take('statement', statement.connectWithinMs)
        const connection = new ConnectionWatch(client, false)
        let broken = false
        try {
          const rows = await prepared.query(client, statement, () =>
            runStatement(client, statement),
          )
          connection.assertSynced()
          // A BEGIN that nobody awaited before the connection was given back: ours is in that transaction.
          if (isLeftOpen(client)) throw leftOpen()
          return rows
        } catch (error) {
          // Also where the client gave up waiting, since the statement may still be running on it, and where
          // it leads to a server that is no primary any more.
          broken = isUnanswered(error) || sqlStateOf(error) === '25006' || isLeftOpen(client)
          throw error
        } finally {
          connection.stop()
          connects.giveBack(client, connection.lost || broken)
        }
      },
    },
    join: (tx) => join(assertClient(tx)),
    transaction: (body, settings) => runOn(pool, connects, join, openings, body, settings),
    session: async () => pgSession(await connects.take('session'), runStatement),
    listen: async (channel, heard) =>
      await pgListening(await connects.take('session'), runStatement, channel, heard),
  }
}

/**
 * BEGIN, body, COMMIT on one client. The client goes back to the pool only when its connection is
 * known to be idle; in every other case it is destroyed.
 */
async function runOn<Tx, T>(
  pool: PgPool,
  connects: PgConnects,
  join: (client: PgClient, native: PgClient) => Transaction<Tx>,
  openings: PgOpenings,
  body: (transaction: Transaction<Tx>, opened?: Promise<readonly Row[]>) => Promise<T>,
  settings: TransactionSettings,
): Promise<T> {
  if (isInTransaction(pool)) throw holdfastError('TX_NESTED')
  const client = await connects.take('transaction', settings.connectWithinMs)
  try {
    settings.connected?.()
  } catch (error) {
    connects.giveBack(client, false)
    throw error
  }
  // If it has one already, that one gives the client back.
  const free = takeAlone((client as { readonly connection?: object }).connection ?? client)
  const connection = new ConnectionWatch(client)
  const leash = new Leash()
  let clean = false
  let foreign = undefined as Error | undefined
  try {
    let result: T
    try {
      const begin = beginText(settings.isolation)
      const opening = settings.opening?.()
      const begun = <Rows>(rows: Rows): Rows => {
        if (connection.begunInside) throw (foreign = leftOpen())
        connection.leash = leash
        return rows
      }
      const refused = (error: unknown): never => {
        if (insideAlready.has(sqlStateOf(error))) foreign = leftOpen(error)
        throw foreign ?? error
      }
      const opened = opening && openings.send(client, begin, opening)?.then(begun, refused)
      // The body awaits it when it wants the lock.
      opened?.catch(ignored)
      if (opened === undefined) await client.query(begin).then(begun, refused)
      result = await body(join(client, leashedClient(client, leash)), opened)
      if (foreign !== undefined) throw foreign
      await connection.answered()
      leash.end(isBusy(client), pgTransactionState(client) === 'failed')
      if (connection.lost) throw holdfastError('CONNECTION_LOST')
      if (pgTransactionState(client) === 'none') throw endedInside('unknown')
    } catch (error) {
      const failed = leash.failed(error)
      leash.close()
      // Nothing is sent on it any more, and no ROLLBACK: it is closed.
      if (foreign !== undefined) throw foreign
      // If it does not come to rest it is ended by us, which is no loss.
      if (!connection.lost && !(await cameToRest(client))) throw bodyFailure(failed, false)
      if (!connection.lost) clean = await rolledBack(client)
      // A server that ends says so in a statement's error, before its connection is closed.
      throw bodyFailure(failed, connection.lost || (!clean && isConnectionLoss(failed)))
    }
    leash.close()
    connection.committing()
    await commit(client)
    clean = true
    if (connection.committedNothing) throw endedInside('unknown')
    connection.assertSynced()
    return result
  } finally {
    free()
    connection.stop()
    connects.giveBack(client, !clean)
  }
}

/**
 * Not prepared: a caller may drop prepared statements, and a transaction would not survive it. If
 * its columns are known, it goes out in one write and nobody asks for their description.
 */
async function runStatement(client: PgClient, statement: Statement): Promise<readonly Row[]> {
  const { text, columns } = statement
  if (columns !== undefined && isWireClient(client)) {
    const message = pipelineMessage({ name: '', text, ...bound(statement), known: false })
    return (await sendOnWire(client, message, { columns })).rows
  }
  const { rows } = await client.query(text, [...statement.values])
  return rows as readonly Row[]
}

/** What BEGIN fails with inside of a transaction: one that has read something already, or that has failed. */
const insideAlready: ReadonlySet<string | undefined> = new Set(['25001', '25P02'])

function inTurn(client: PgClient, first: Statement, second: Statement): BothAnswers {
  const firstRows = runStatement(client, first)
  return [firstRows, firstRows.then(() => runStatement(client, second))]
}

const commitMessage = simpleMessage(commitText)

async function commit(client: PgClient): Promise<void> {
  let tag: string
  try {
    tag = isWireClient(client)
      ? (await sendOnWire(client, commitMessage, noColumns)).tag
      : (await client.query(commitText)).command
  } catch (error) {
    throw commitFailure(error)
  }
  if (tag === rolledBackTag) throw holdfastError('TX_ROLLED_BACK')
}

async function rolledBack(client: PgClient): Promise<boolean> {
  try {
    await client.query(rollbackText)
    return true
  } catch {
    // The caller gets the error that made us roll back; the connection is destroyed.
    return false
  }
}

/** A client of an open transaction is told as that, when somebody begins another one on it. */
function assertPool(pool: unknown): void {
  if (isInTransaction(pool ?? {})) return
  const wanted = { kind: 'pgPool', by: 'fromPg', is: 'a pg.Pool' } as const
  assertKind(pool, wanted, typeof (pool as Partial<PgPool> | null)?.connect === 'function')
}

/** A pool has `query` too, and its statements run on any connection: refuse it by shape. */
function assertClient(tx: unknown): PgClient {
  const handle = tx as (Partial<PgClient> & { totalCount?: unknown }) | null | undefined
  if (typeof handle?.query !== 'function' || typeof handle.on !== 'function') {
    throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject: 'pg client expected' } })
  }
  return handle as PgClient
}

/** Somebody passed the client of a transaction where the pool belongs. */
function isInTransaction(root: unknown): boolean {
  return ['open', 'failed'].includes(pgTransactionState(root))
}

function ignored(): void {}
