/** What this room asks of a database. Each engine that can claim rows brings one `ClaimsEngine`. */
import type { Driver, Executor, Row, Transaction } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { TableName } from '../core/table-name.ts'
import type { ClaimFinding } from '../core/errors/error-details.ts'

/** A value that a column can have. The server gives it the column's type; other types go as text. */
export type ColumnValue = string | number | boolean | null

/** One column that comes before all others in the order, with few different values. */
export interface PriorityColumn {
  readonly column: string
  readonly first: 'smallest' | 'largest'
}

/** Which rows wait, and in which order. */
export interface Waiting {
  readonly table: TableName
  readonly key: readonly string[]
  readonly status: string
  readonly pending: ColumnValue
  /** Conditions that every row of ours meets. */
  readonly where: readonly (readonly [column: string, value: ColumnValue])[]
  readonly runAt: string | undefined
  readonly priority: PriorityColumn | undefined
  /** Oldest first, by these, after the priority. */
  readonly order: readonly string[]
  /** Which columns come back; all of them if `undefined`. */
  readonly columns: readonly string[] | undefined
  /** Columns that come back as text, whatever the client makes of their types; then no others do. */
  readonly texts?: readonly string[]
  /** Of a table on several primaries whose rows move with their bucket: where our functions are, and which column. */
  readonly shard?: { readonly schema: string; readonly bucket: string }
}

/** What a claim writes. */
export interface ClaimLayout extends Waiting {
  readonly claimed: ColumnValue
  readonly token: string
  readonly leaseUntil: string
  readonly attempts: string | undefined
  readonly holder: string | undefined
}

/** What becomes of claimed rows: something is done only where the token still fits. */
export interface FinishLayout extends ClaimLayout {
  /** `undefined` deletes the row. */
  readonly done: ColumnValue | undefined
  /** `undefined` tries for ever. */
  readonly dead: ColumnValue | undefined
  /** A number, or a column of the table. */
  readonly maxAttempts: number | { readonly column: string }
  readonly error: string | undefined
  readonly finishedAt: string | undefined
}

/** The layout of rows that are only locked, and finished in the same transaction. */
export interface TakeLayout extends Waiting {
  readonly done: ColumnValue | undefined
  readonly finishedAt: string | undefined
}

/** Rows that had their last attempt, and the order in which they are shown. */
export interface DeadLayout extends FinishLayout {
  readonly dead: ColumnValue
  /** Columns that are never null and together name one row; the order of the list. */
  readonly listedBy: readonly string[]
  /** All of the row, as JSON has it, whatever the client makes of its types. */
  readonly asJson: boolean
}

/** A limit of rows that are claimed in any span of time. */
export interface RateLimit {
  /** Where our functions are. */
  readonly schema: string
  /** What it is a limit of, the same in all processes. */
  readonly name: string
  readonly most: number
  readonly perMs: number
}

/** What is limited of each key, over all processes. */
export interface KeyLimits {
  /** Rows in flight at a time. */
  readonly limit: number | undefined
  readonly rate: RateLimit | undefined
}

/** Who has turns. */
export interface PerKey extends KeyLimits {
  readonly column: string
}

/** Claims of either mode, as far as their table is concerned. */
export interface OverTable {
  readonly layout: TakeLayout & Partial<FinishLayout>
  readonly perKey: (Pick<PerKey, 'column' | 'limit'> & Partial<PerKey>) | undefined
  /** The table is one of Holdfast's own. */
  readonly isOurs?: boolean
}

/** `ClaimsOptions`, read. */
export interface LeaseSettings {
  readonly layout: FinishLayout
  readonly leaseMs: number
  readonly forMs: number
  readonly backoff: { readonly firstMs: number; readonly mostMs: number }
  readonly perKey: PerKey | undefined
  /** The column with the bucket, if rows move with it. */
  readonly bucket: string | undefined
  /** The table is one of Holdfast's own. */
  readonly isOurs?: boolean
}

export interface ClaimRequest {
  readonly limit: number
  /** In the caller's transaction, which may not see what others have committed. */
  readonly joined: boolean
  /** What fences everything later. */
  readonly token: string
  readonly holder: string
}

/** One row that was claimed or taken. */
export interface ClaimedRow {
  readonly key: readonly string[]
  readonly attempt: number | undefined
  readonly row: Row
}

export interface Claimed {
  readonly rows: readonly ClaimedRow[]
  /** A moment before the leases began, by `performance.now()`. */
  readonly sentMs: number
}

/** What happens to a claimed row. */
export type FinishVerb = 'complete' | 'fail' | 'release' | 'heartbeat'

/** One claim, as far as its row goes. */
export interface FinishItem {
  readonly key: readonly string[]
  readonly token: string
  /** Of `fail`: when it may be tried again. */
  readonly delayMs?: number
  readonly error?: string
}

/**
 * `kept`: done as asked. `dead`: failed for the last time. `busy`: somebody has the row locked, and the token fits.
 * `lost`: it does not fit any more.
 */
export type FinishState = 'kept' | 'dead' | 'busy' | 'lost'

export interface Finished {
  /** Of each claim, in the order given. */
  readonly states: readonly FinishState[]
  /** An answer was lost, and this one may be about the first time. */
  readonly doubted: boolean
}

/** What a sweep did. */
export interface Recovered {
  /** Rows whose lease was over, all together. */
  readonly freed: number
  /** Those of them that had their last attempt. */
  readonly dead: number
}

/** What is done about dead rows. */
export type DeadVerb = 'retry' | 'delete'

/** One dead row by its key, or the next ones behind a place. */
export type WantedDead =
  | { readonly key: readonly string[] }
  | { readonly limit: number; readonly after: string | undefined }

/** One dead row. */
export interface FoundDead {
  readonly key: readonly string[]
  readonly attempts: number | undefined
  readonly error: string | undefined
  /** Where the next page would begin. */
  readonly place: string
  readonly row: Row
}

/** Something to do in the table `work`. */
export interface WorkRow {
  readonly id: string
  readonly queue: string
  readonly scope: string
  readonly payloadJson: string
  readonly priority: number | undefined
  readonly uniqueKey: string | undefined
  readonly delayMs: number | undefined
  /** ISO text. */
  readonly runAt: string | undefined
  readonly maxAttempts: number | undefined
  readonly whileRunning: 'run-after' | undefined
}

/** What became of it. */
export interface Enqueued {
  /** Of the row; of the one that was there already if it was not added. */
  readonly id: string | undefined
  /** False if one with the same unique key was there. */
  readonly added: boolean
  /**
   * Of `whileRunning: 'run-after'`, if it was not added: `after` if it runs once the other has ended,
   * `replaced` if the other had not begun and has the new payload.
   */
  readonly follow?: 'after' | 'replaced'
}

/**
 * Rows of one table that are claimed with a lease. Remembers whose turn it was last. Without a transaction each is on its
 * own: one statement, or a short transaction of the engine.
 */
export interface LeasedRows<Tx> {
  /**
   * Claims the next rows, without waiting for those that others have locked. Where keys have limits there is always a
   * transaction at READ COMMITTED: their locks are held until it ends, so that what is counted stays true.
   *
   * @throws CLAIM_STALE_SNAPSHOT
   */
  claim(transaction: Transaction<Tx> | undefined, request: ClaimRequest): Promise<Claimed>
  /** On its own, a lost answer is asked for so long. A heartbeat does not wait for rows that are locked. */
  finish(
    transaction: Transaction<Tx> | undefined,
    verb: FinishVerb,
    items: readonly FinishItem[],
    forMs: number,
  ): Promise<Finished>
  /** Gives rows back whose lease is over, in the place they had, at most so many. */
  recover(limit: number): Promise<Recovered>
}

/** Rows of one table that are locked for the length of the caller's transaction. */
export interface TakenRows<Tx> {
  /** @throws CLAIM_STALE_SNAPSHOT */
  take(transaction: Transaction<Tx>, limit: number): Promise<readonly ClaimedRow[]>
  /** Those that this transaction has taken are done. */
  finish(
    transaction: Transaction<Tx>,
    keys: readonly (readonly string[])[],
  ): Promise<readonly FinishState[]>
}

/** Claims over tables of one database. What is done over them fails as the server says, but in `overTable`. */
export interface ClaimsEngine {
  readonly of: EngineName
  /** Whether workers may be woken by a notification, by clients that can listen. */
  readonly hears: boolean
  leased<Tx>(driver: Driver<Tx>, settings: LeaseSettings): LeasedRows<Tx>
  taken<Tx>(driver: Driver<Tx>, settings: OverTable): TakenRows<Tx>
  /** The caller's transaction, which must really be open. @throws CLAIM_OUTSIDE_TRANSACTION */
  joined<Tx>(driver: Driver<Tx>, tx: Tx): Promise<Transaction<Tx>>
  /** What the table lacks, for claims by this role. */
  check<Tx>(driver: Driver<Tx>, settings: OverTable): Promise<readonly ClaimFinding[]>
  /**
   * What is done over a table, with errors that say if the table is why. `beside` is where that may be looked up: another
   * connection, if it failed in a transaction.
   *
   * @throws CLAIM_TABLE_UNFIT, SCHEMA_MISSING of a table of ours
   */
  overTable<T>(settings: OverTable, beside: Executor, asking: Promise<T>): Promise<T>
  /** @throws OPTION_INVALID if a value is none that its column can have */
  findDead<Tx>(
    driver: Driver<Tx>,
    layout: DeadLayout,
    wanted: WantedDead,
  ): Promise<readonly FoundDead[]>
  /**
   * Makes them pending again, with all their attempts before them, or deletes them; for all or, if another row has a
   * unique key of one of them, for none. Gives the keys for which it was done.
   *
   * @throws OPTION_INVALID if a value is none that its column can have
   */
  changeDead<Tx>(
    driver: Driver<Tx>,
    layout: DeadLayout,
    verb: DeadVerb,
    keys: readonly (readonly string[])[],
  ): Promise<readonly (readonly string[])[] | 'taken'>
  /** Adds to the table `work`; listeners of the channel are woken. @throws CLAIM_OUTSIDE_TRANSACTION, SCHEMA_MISSING */
  enqueue<Tx>(
    driver: Driver<Tx>,
    tx: Tx | undefined,
    schema: string,
    work: readonly WorkRow[],
    channel: string | undefined,
  ): Promise<readonly Enqueued[]>
  /** SCHEMA_MISSING if an error says that tables of ours are not there; otherwise the error itself. */
  missing(error: unknown): unknown
}
