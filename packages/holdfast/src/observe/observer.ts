import type { QueuedKey } from '../core/locks/key-queues.ts'
import type {
  BookSummary,
  HotKey,
  LockMinute,
  LockTree,
  ObservedAccount,
  ObservedClaims,
  ObservedFollower,
  ObservedGrant,
  ObservedHold,
  ObservedKey,
  ObservedLease,
  ObservedMovement,
  ObservedSchedule,
  ObservedSession,
  ObservedUsage,
  SeenName,
  TransactionReport,
} from './model.ts'
import type { KnownOptions } from '../core/options/known-options.ts'
import type { ClaimsOptions } from '../claims/layout.ts'

/** An account of the ledger, with everything under it. */
export interface AccountReport {
  /** One per window, the latest first; one alone where the book has no windows. */
  readonly accounts: readonly ObservedAccount[]
  readonly holds: readonly ObservedHold[]
  readonly grants: readonly ObservedGrant[]
  /** The latest first. */
  readonly movements: readonly ObservedMovement[]
  /** Pass it as `before` to get what is older; absent at the end. */
  readonly next?: string
}

/** Which account. */
export interface AccountAddress {
  readonly book: string
  readonly key: string
  /** By default the key. */
  readonly scope?: string
}

/** Which part of the keys of a book. */
export interface KeysPage {
  /** `next` of the page before. */
  readonly after?: string
  /** 1 to 1000. @defaultValue 100 */
  readonly limit?: number
}

/** Keys of a book, in their order. */
export interface BookKeys {
  /** One for each scope that a key is used with. */
  readonly keys: readonly ObservedKey[]
  /** Pass it as `after` to get the next ones; absent at the end. */
  readonly next?: string
}

/** What a key used of a book lately. */
export interface UsageReport {
  readonly from: string
  /** By feature; none, and not complete, of a rate: it keeps no usage. */
  readonly rows: readonly ObservedUsage[]
  /** False if something of this time may have been dropped or forgotten. */
  readonly complete: boolean
}

/**
 * Looks at a database, and changes nothing. Each call is one short read-only transaction with a statement
 * timeout of its own; counts stop at a bound. Works without Holdfast's schema, as far as locks go.
 */
export interface Observer {
  /** Who blocks whom, by name. */
  locks(): Promise<LockTree>
  /** One session, whatever it does. */
  session(pid: number): Promise<ObservedSession | undefined>
  /** Keys that most sessions wait for, right now. */
  hotKeys(): Promise<readonly HotKey[]>
  /**
   * Keys that guards of this process wait for in memory, the longest queue first: those of the same driver, since
   * only they share a queue. Asks nobody, so it works without a connection.
   *
   * @example for (const { name, first, waiting } of hf.observe.queues()) print(name, first.pid, waiting.length)
   */
  queues(): readonly QueuedKey[]
  /** Names seen lately, by this process and by those that record. */
  names(options?: {
    readonly namespace?: string
    readonly limit?: number
  }): Promise<readonly SeenName[]>
  /** How locks were used, minute by minute. */
  lockMinutes(options?: {
    readonly namespace?: string
    readonly minutes?: number
  }): Promise<readonly LockMinute[]>
  /** Longest transactions, and who holds vacuum back. */
  transactions(options?: { readonly limit?: number }): Promise<TransactionReport>
  books(): Promise<readonly BookSummary[]>
  account(
    address: AccountAddress,
    options?: { readonly movements?: number; readonly before?: string },
  ): Promise<AccountReport>
  /** The keys of a book, with what they stand at. */
  keys(book: string, options?: KeysPage): Promise<BookKeys>
  /** What a key used in the last days, 30 unless told, by feature. Of whole books `ledger.usage` tells it. */
  usage(address: AccountAddress, options?: { readonly days?: number }): Promise<UsageReport>
  /** Who follows movements, and how far they have read. */
  followers(): Promise<readonly ObservedFollower[]>
  /** Open holds: the overdue first, then those that end first. */
  holds(options?: { readonly limit?: number }): Promise<readonly ObservedHold[]>
  leases(options?: { readonly limit?: number }): Promise<readonly ObservedLease[]>
  schedules(options?: { readonly ticks?: number }): Promise<readonly ObservedSchedule[]>
  /** The tables that were named in the options, and the ready-made one. */
  claims(): Promise<readonly ObservedClaims[]>
}

/** Settings of an observer. */
export interface ObserverOptions {
  /** Where Holdfast's tables are. @defaultValue 'holdfast' */
  readonly schema?: string
  /** Tables of yours that rows are claimed from, as they were given to `hf.claims`. */
  readonly claims?: readonly ClaimsOptions[]
  /** No statement of the observer runs longer. @defaultValue 2_000 */
  readonly statementTimeoutMs?: number
}

export const observerOptions: KnownOptions<ObserverOptions> = {
  schema: 'text',
  claims: 'list',
  statementTimeoutMs: 'checked',
}

type Options<M extends keyof Observer, At extends 0 | 1 = 0> = NonNullable<
  Parameters<Observer[M]>[At]
>

export const accountAddress: KnownOptions<AccountAddress> = {
  book: 'checked',
  key: 'checked',
  scope: 'checked',
}

export const limitOptions: KnownOptions<Options<'holds'>> = {
  limit: 'checked',
}

export const namesOptions: KnownOptions<Options<'names'>> = {
  namespace: 'checked',
  limit: 'checked',
}

export const minutesOptions: KnownOptions<Options<'lockMinutes'>> = {
  namespace: 'checked',
  minutes: 'checked',
}

export const accountOptions: KnownOptions<Options<'account', 1>> = {
  movements: 'checked',
  before: 'checked',
}

export const keysPage: KnownOptions<KeysPage> = {
  after: 'checked',
  limit: 'checked',
}

export const daysOptions: KnownOptions<Options<'usage', 1>> = {
  days: 'checked',
}

export const ticksOptions: KnownOptions<Options<'schedules'>> = {
  ticks: 'checked',
}
