import type { Scope } from './bucket.ts'
import type { Engine, Isolation, Statement } from './engine.ts'

/**
 * The seam between Holdfast and a database client. A driver turns a native client into these few
 * things and holds no domain logic: the rooms decide what to run, the engine says it in SQL.
 */
export type { Isolation, PackedValues, Statement, Value } from './engine.ts'

/** A row as the client returned it. Rooms decode; drivers do not. */
export type Row = Record<string, unknown>

/** Anything that runs one statement. */
export interface Executor {
  query(statement: Statement): Promise<readonly Row[]>
}

/**
 * Whether a native handle is inside a transaction block right now. `unknown` means the client
 * cannot say; the room then asks the server, at the cost of one more round trip.
 */
export type TransactionState = 'open' | 'failed' | 'none' | 'unknown'

/** The rows of each of two statements; those of the first come also if the second fails. */
export type BothAnswers = readonly [first: Promise<readonly Row[]>, second: Promise<readonly Row[]>]

/** An open transaction, ours or the caller's. Only whoever opened it may end it. */
export interface Transaction<Tx> extends Executor {
  /** The client's own transaction handle, exactly as the caller knows it. */
  readonly native: Tx
  /** Milliseconds, from BEGIN, after which the client itself gives the transaction up. */
  readonly budgetMs: number | undefined
  /** Other connections to the server that this transaction is on; those of the driver if absent. */
  readonly beside?: Executor | undefined
  state(): TransactionState
  /**
   * How many transactions have ended on this connection since this was first asked. Absent where the handle is used for
   * one transaction only, or the client does not show it.
   */
  endings?(): number | undefined
  /**
   * Sends two statements in one round trip; the second runs only if the first has succeeded. Absent where
   * the client cannot, or sends what is not waited for in one round trip anyhow.
   */
  both?(first: Statement, second: Statement): BothAnswers
  /**
   * Has the server end what this transaction is running, by PostgreSQL's cancel request, on a connection that is none
   * of the pool's. Resolves when the server was told, or in vain after a second. Absent where the client hides what
   * that takes.
   */
  readonly cancel?: (() => Promise<void>) | undefined
  /** Runs a utility statement (SAVEPOINT, LOCK TABLE) that takes no values and returns no rows. */
  command(text: string): Promise<void>
  /**
   * Runs the body in a savepoint of this transaction: kept if it resolves, undone if it rejects,
   * so that a failed statement does not end the caller's transaction.
   */
  nested<T>(body: (inner: Transaction<Tx>) => Promise<T>): Promise<T>
}

/** How a driver opens a transaction. */
export interface TransactionSettings {
  readonly isolation?: Isolation | undefined
  /** Upper bound on the whole transaction, for clients that keep a timer of their own. */
  readonly timeoutMs?: number | undefined
  /**
   * The first statement of the transaction. A driver that can sends it together with BEGIN, saving
   * a round trip, and hands the body its answer; others leave it to the body. Called when there is a
   * connection and not before: it may have a limit in it that counts from the call.
   */
  readonly opening?: (() => Statement | undefined) | undefined
  /**
   * Called when there is a connection; if it throws, nothing is begun. Only of a driver that has the connection before
   * it sends BEGIN: whoever depends on it looks again when the body begins.
   */
  readonly connected?: (() => void) | undefined
  /** The first statement of the body sets the lock's marker, for drivers that look for it before COMMIT. */
  readonly marked?: boolean | undefined
  /** The body begins with a wait for what it needs; a driver whose BEGIN would be that wait leaves it to the body. */
  readonly bodyWaits?: boolean | undefined
  /** Longest wait for a connection, for a driver that `connectsWithin`. */
  readonly connectWithinMs?: number | undefined
  /** What this transaction touches; a sharded driver routes by it, a plain one ignores it. */
  readonly scopes: readonly Scope[]
}

/** What a client can do beyond running statements; see docs/drivers.md. */
export interface DriverCapabilities {
  /** Statements sent without waiting for each other share a round trip, in order. */
  readonly pipelines?: boolean
  /** Statements run in the order in which they were asked for, each when the one before has ended. */
  readonly queues?: boolean
  /** The pool of connections, where the client shows it: what it is known by, and how many it may open. */
  readonly pool?: { readonly of: object; readonly size: number } | undefined
  /** It limits the wait for a connection by `connectWithinMs`, and says why there was none. */
  readonly connectsWithin?: boolean
}

/** A native client, made usable by every room. */
export interface Driver<Tx> {
  /** The client's package name, for messages. */
  readonly name: string
  readonly engine: Engine
  readonly capabilities: DriverCapabilities
  /** Runs a statement on its own connection, outside any transaction. */
  readonly alone: Executor
  /** Looks at a handle of the caller's. Never opens, commits or rolls back anything. */
  join(tx: Tx): Transaction<Tx>
  /**
   * Only of a client whose handle has a say in where the tables of its models are: the schema of a model that names this
   * one, or none. Nothing if the table is found by search_path.
   */
  schemaOf?(tx: Tx, named: string | undefined): string | undefined
  /**
   * Opens a transaction, runs the body, and resolves only if PostgreSQL committed. A failure
   * after the body finished goes through `commitFailure` so that an unknown outcome is named.
   */
  transaction<T>(
    body: (transaction: Transaction<Tx>, opened?: Promise<readonly Row[]>) => Promise<T>,
    settings: TransactionSettings,
  ): Promise<T>
  /** The pool beneath the client, where it can be reached: used inside a body it is a mistake. */
  root?(): object | undefined
  /** Only of a driver over several primaries. */
  readonly shards?: Shards<Tx>
}

/** Several primaries, each with its own part of the buckets. */
export interface Shards<Tx> {
  /** By the names that the servers have. Statements on their own that have scopes are checked there. */
  readonly primaries: ReadonlyMap<string, Driver<Tx>>
  /** Where our functions are, on each of them. */
  readonly schema: string
  /** Where these are believed to be, if it is known and all of them are on one primary. */
  guess(scopes: readonly Scope[]): string | undefined
  /**
   * Runs something on the primary that has all these buckets. What is sent there with the executor is
   * checked by the server and refused if it has not; then it is run again where they are by now.
   *
   * @throws SHARD_SPLIT, SHARD_MOVING, SHARD_ELSEWHERE, SHARD_PRIMARY_UNKNOWN, SHARD_BUCKET_LOST, SHARD_MAP_MISSING,
   * SHARD_MAP_INVALID
   */
  routed<T>(
    scopes: readonly Scope[],
    run: (primary: string, executor: Executor) => Promise<T>,
  ): Promise<T>
}

/** The primaries of a driver: of one that is not sharded, itself. */
export function primariesOf<Tx>(driver: Driver<Tx>): readonly Driver<Tx>[] {
  return driver.shards === undefined ? [driver] : [...driver.shards.primaries.values()]
}

/**
 * One connection that is ours alone until it ends, for what lives in a session. Autocommit: every
 * statement is a transaction of its own.
 */
export interface Session extends Executor {
  /**
   * Aborted, with the reason, as soon as the client knows that the connection is gone; of several primaries also
   * when the bucket of its scope leaves this one.
   */
  readonly lost: AbortSignal
  /**
   * The backend's process id as the client was told when it connected. A pooler makes one up: if
   * the server says otherwise, the session is not ours alone.
   */
  readonly claimedPid: number | undefined
  /** Closes the connection, so that nothing of the session is left. Calling it again is harmless. */
  end(): Promise<void>
}

/** Notifications of one channel. A hint: those sent while the connection was down are lost. */
export interface Listening {
  /** Aborted when the connection is gone, by clients that do not connect again by themselves. */
  readonly lost: AbortSignal
  /** Names those of several primaries that could not be listened to. */
  readonly failure?: Error | undefined
  end(): Promise<void>
}

/** A driver whose client can keep a connection to itself. */
export interface SessionDriver<Tx> extends Driver<Tx> {
  /** Takes a connection and keeps it. It should lead straight to the server; of several to the one of `scope`. */
  session(scope?: string): Promise<Session>
  /** Hears notifications on a connection of its own, which should lead straight to the server. */
  listen(channel: string, heard: (payload: string) => void): Promise<Listening>
}

/** Whether this driver's client can keep a connection to itself. */
export function hasSessions<Tx>(driver: Driver<Tx>): driver is SessionDriver<Tx> {
  return typeof (driver as Partial<SessionDriver<Tx>>).session === 'function'
}
