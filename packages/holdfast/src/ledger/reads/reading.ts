import { type AmountKind, type AmountOf, amounts } from '../book.ts'
import type { Key } from '../operation.ts'
import type { WindowBounds } from '../stored-text.ts'
import type { Balance } from '../verdict.ts'
import type { KnownOptions } from '../../core/options/known-options.ts'

/** What a key is looked up by, besides its book. */
export interface ReadOptions<K extends AmountKind = 'number'> {
  /** The scope it was used with. @defaultValue the key */
  readonly scope?: string
  /** @defaultValue 'number' */
  readonly amounts?: K
}

/** What an account stands at, as its last movement left it. */
export interface AccountBalance<A> extends Balance<A> {
  /** When that movement was; undefined if there was none. */
  readonly at: Date | undefined
  /** Of a book with calendar windows: the one this is about. */
  readonly window: WindowBounds | undefined
  /** A hold or grant has fallen due and is not booked yet: the next operation or sweep does it. */
  readonly due: boolean
}

/** What an account of credits stands at. */
export interface CreditBalance<A> extends AccountBalance<A> {
  /** What can be spent on the feature that was asked for, or on none: `available` without what is only for others. */
  readonly spendable: A
}

/** What changed a balance. */
export type MovementKind =
  | 'credit'
  | 'debit'
  | 'hold'
  | 'settle'
  | 'release'
  | 'expire'
  | 'refund'
  | 'grant'
  | 'lapse'
  | 'void'
  | 'adjust'
  | 'opening'
  | 'return'
  | 'limit'
  | 'transfer-out'
  | 'transfer-in'

/** One line of the history: what changed, and what it left. */
export interface Movement<A> extends Balance<A> {
  readonly kind: MovementKind
  readonly at: Date
  /** How much this movement credited, debited and held; a hold that ended is negative. */
  readonly credit: A
  readonly debit: A
  readonly hold: A
  /** Of a hold that ended: the operation that made it. */
  readonly operationId: string
  readonly holdId: string | undefined
  readonly grantId: string | undefined
  readonly note: Readonly<Record<string, unknown>> | undefined
  readonly window: WindowBounds | undefined
}

/** Options of `history`. */
export interface HistoryOptions<K extends AmountKind = 'number'> extends ReadOptions<K> {
  /** `next` of the page before. */
  readonly before?: string | undefined
  /** 1 to 1000. @defaultValue 50 */
  readonly limit?: number
}

/** A page of the history. */
export interface History<A> {
  readonly movements: readonly Movement<A>[]
  /** Pass it as `before` to get what is older; undefined at the end. */
  readonly next: string | undefined
}

/** Options of `holds`. */
export interface HoldsOptions<K extends AmountKind = 'number'> extends ReadOptions<K> {
  /** 1 to 1000. @defaultValue 100 */
  readonly limit?: number
}

export const readOptions: KnownOptions<ReadOptions<AmountKind>> = {
  scope: 'checked',
  amounts: amounts,
}

export const holdsOptions: KnownOptions<HoldsOptions<AmountKind>> = {
  ...readOptions,
  limit: 'checked',
}

export const historyOptions: KnownOptions<HistoryOptions<AmountKind>> = {
  ...holdsOptions,
  before: 'checked',
}

/** An amount that is put aside right now. */
export interface OpenHold<A> {
  readonly holdId: string
  readonly amount: A
  readonly expiresAt: Date
  /** It has expired, and the next operation or sweep will book that. */
  readonly overdue: boolean
  readonly operationId: string
  readonly window: WindowBounds | undefined
}

/**
 * Reading without adding up: each call is a few look-ups in an index, however long the history. With
 * `tx` it sees what that transaction sees, its own changes included.
 */
export interface LedgerReads<Tx> {
  /**
   * What a key stands at. A key that was never used has a balance of zero.
   *
   * @throws LEDGER_NAME_INVALID, LEDGER_AMOUNT_UNSAFE, SCHEMA_MISSING
   */
  balance<K extends AmountKind = 'number'>(
    book: string,
    key: Key,
    options?: ReadOptions<K>,
  ): Promise<AccountBalance<AmountOf<K>>>
  balance<K extends AmountKind = 'number'>(
    tx: Tx,
    book: string,
    key: Key,
    options?: ReadOptions<K>,
  ): Promise<AccountBalance<AmountOf<K>>>
  /**
   * What a key stood at, at the end of a millisecond of the past. Undefined if the movements of that
   * month were dropped.
   *
   * @throws LEDGER_NAME_INVALID, OPTION_INVALID, LEDGER_AMOUNT_UNSAFE, SCHEMA_MISSING
   */
  balanceAt<K extends AmountKind = 'number'>(
    book: string,
    key: Key,
    moment: Date,
    options?: ReadOptions<K>,
  ): Promise<AccountBalance<AmountOf<K>> | undefined>
  balanceAt<K extends AmountKind = 'number'>(
    tx: Tx,
    book: string,
    key: Key,
    moment: Date,
    options?: ReadOptions<K>,
  ): Promise<AccountBalance<AmountOf<K>> | undefined>
  /**
   * Movements of a key, newest first; of a book with calendar windows, window after window.
   *
   * @example
   * const { movements, next } = await hf.ledger.history('credits', userId, { limit: 20 })
   * const older = await hf.ledger.history('credits', userId, { limit: 20, before: next })
   * @throws LEDGER_NAME_INVALID, OPTION_INVALID, LEDGER_AMOUNT_UNSAFE, SCHEMA_MISSING
   */
  history<K extends AmountKind = 'number'>(
    book: string,
    key: Key,
    options?: HistoryOptions<K>,
  ): Promise<History<AmountOf<K>>>
  history<K extends AmountKind = 'number'>(
    tx: Tx,
    book: string,
    key: Key,
    options?: HistoryOptions<K>,
  ): Promise<History<AmountOf<K>>>
  /** The open holds of a key, those that expire first come first. */
  holds<K extends AmountKind = 'number'>(
    book: string,
    key: Key,
    options?: HoldsOptions<K>,
  ): Promise<readonly OpenHold<AmountOf<K>>[]>
  holds<K extends AmountKind = 'number'>(
    tx: Tx,
    book: string,
    key: Key,
    options?: HoldsOptions<K>,
  ): Promise<readonly OpenHold<AmountOf<K>>[]>
}
