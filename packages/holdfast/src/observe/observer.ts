import type {
  BookSummary,
  HotKey,
  LockMinute,
  LockTree,
  ObservedAccount,
  ObservedClaims,
  ObservedGrant,
  ObservedHold,
  ObservedLease,
  ObservedMovement,
  ObservedSchedule,
  ObservedSession,
  SeenName,
  TransactionReport,
} from './model.ts'

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
  /** Open holds: the overdue first, then those that end first. */
  holds(options?: { readonly limit?: number }): Promise<readonly ObservedHold[]>
  leases(options?: { readonly limit?: number }): Promise<readonly ObservedLease[]>
  schedules(options?: { readonly ticks?: number }): Promise<readonly ObservedSchedule[]>
  /** The tables that were named in the options, and the ready-made one. */
  claims(): Promise<readonly ObservedClaims[]>
}
