import type { Duration } from '../core/options/duration.ts'
import type { AmountKind, PreparedLine } from '../ledger/book.ts'
import type { Amount, Key } from '../ledger/operation.ts'
import type { Opened, OpeningOptions } from '../ledger/upkeep/opening.ts'
import type { AccountBalance, History } from '../ledger/reads/reading.ts'
import type { Verdict } from '../ledger/verdict.ts'
import type { StockVerdict } from './stock-verdict.ts'

/** Declares a stock. */
export interface StockOptions<K extends AmountKind = 'number', L extends string = string> {
  /** Name of the book; the same name is the same stock in every process. */
  readonly name: string
  /**
   * The places that goods can be at. If given, every line names one of them, unless there is only
   * one; if not, lines may name any location or none.
   */
  readonly locations?: readonly L[]
  /**
   * What must stay together on one server, and within which external ids are unique. It is part of
   * what an account is: another scope is another balance. @defaultValue the name
   */
  readonly scope?: string
  /** How much of a SKU may be sold ahead of what is there; one for all or by SKU. @defaultValue 0 */
  readonly backorder?: Amount | ((sku: string, location: L | undefined) => Amount | Promise<Amount>)
  /**
   * How long a refused order stays refused when its id comes again, so that a late duplicate cannot
   * succeed after the customer was told no. A refused reservation: for as long as it would have
   * lived. `false`: every try is judged anew. @defaultValue '10 min'
   */
  readonly stickyFor?: Duration | false
  /**
   * A settlement above what was reserved: `refuse` it, `cap` it at what was reserved, or take it
   * only if `available`. @defaultValue 'refuse'
   */
  readonly overrun?: 'refuse' | 'cap' | 'available'
  /**
   * A settlement after the reservation expired: `book` it once if the goods are still there, or
   * `refuse` it. @defaultValue 'book'
   */
  readonly late?: 'book' | 'refuse'
  /** @defaultValue 'number' */
  readonly amounts?: K
}

/** So many of a SKU. */
export interface StockLine<L extends string = string> {
  readonly sku: Key
  /** Whole pieces, above zero; for `adjust` in either direction. */
  readonly quantity: Amount
  readonly location?: L
  /** If it is not that of the operation; needs `acrossScopes`. */
  readonly scope?: string
}

/** Who, why and from where: kept with every movement. */
export interface StockWords {
  /** Where it came from: a sales channel, a job. */
  readonly source?: string
  /** What it belongs to in your own tables. */
  readonly reference?: { readonly type: string; readonly id: string }
  /** Who did it. */
  readonly actor?: string
  readonly reason?: string
  /** Further words of your own. */
  readonly note?: Readonly<Record<string, unknown>>
}

/** What every operation on stock says about itself. */
export interface StockOperationOptions extends StockWords {
  /**
   * Names this operation for ever: applied once, and a repetition gets the first answer. The id the
   * outside world has for it, such as that of a marketplace's webhook. Unique within the scope.
   */
  readonly externalId: string
  /** @defaultValue that of the stock */
  readonly scope?: string
  /** The lines may belong to different scopes. Reservations may not. */
  readonly acrossScopes?: boolean
}

/** Options of `return`. */
export interface ReturnOptions extends StockOperationOptions {
  /** External id of the sale, or of the reservation that was settled: no more comes back than went. */
  readonly of?: string
}

/** Options of `adjust`. */
export interface AdjustOptions extends StockOperationOptions {
  readonly reason: string
}

/** Options of `reserve`. */
export interface ReserveOptions extends StockOperationOptions {
  /** How long it lives if nobody ends it, on the server's clock. */
  readonly ttl: Duration
}

/** Options of `transfer`. */
export interface TransferOptions<L extends string = string> extends StockOperationOptions {
  readonly from: L
  readonly to: L
}

/** A part of a reservation that is settled, and whose. */
export interface HoldPart<L extends string = string> {
  /**
   * Only these, the rest stays as it is. Without a quantity: all that was reserved of it.
   * @defaultValue the whole reservation
   */
  readonly lines?: readonly {
    readonly sku: Key
    readonly location?: L
    readonly quantity?: Amount
  }[]
  /** Of the reservation, where lines are given. @defaultValue that of the stock */
  readonly scope?: string
}

/** A part of a reservation that is released or extended: of each of its lines all that was reserved. */
export interface WholeLines<L extends string = string> extends Omit<HoldPart<L>, 'lines'> {
  /** Only these, the rest stays as it is. @defaultValue the whole reservation */
  readonly lines?: readonly {
    readonly sku: Key
    readonly location?: L
    readonly quantity?: never
  }[]
}

/** Which balance of a SKU is meant. */
export interface PlaceOptions<L extends string = string> {
  readonly location?: L
  /** @defaultValue that of the stock */
  readonly scope?: string
}

/** Which page of a history. */
export interface HistoryPage {
  /** `next` of the page before. */
  readonly before?: string | undefined
  /** 1 to 1000. @defaultValue 50 */
  readonly limit?: number
}

/** What there is of a SKU at one place, as its last movement left it. */
export interface StockLevel<A> extends AccountBalance<A> {
  readonly sku: string
  readonly location: string | undefined
  /** What is there, reserved or not. Negative: sold ahead of what is still to come. */
  readonly onHand: A
}

/**
 * Stock that changes only through movements and is never below zero, or below what may be sold ahead.
 * Lines of one call are applied together or not at all; lines for the same SKU and location are one.
 */
export interface Stock<Tx, A, L extends string = string> {
  readonly name: string
  /** Goods arrive. @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_SCOPES, SCHEMA_MISSING */
  receive(lines: readonly StockLine<L>[], options: StockOperationOptions): Promise<StockVerdict<A>>
  receive(
    tx: Tx,
    lines: readonly StockLine<L>[],
    options: StockOperationOptions,
  ): Promise<StockVerdict<A>>
  /**
   * Goods leave: an order, if all of it is there.
   *
   * @example
   * const verdict = await stock.issue(tx, [{ sku: 'mug', quantity: 2 }, { sku: 'tee', quantity: 1 }], {
   *   externalId: webhook.id, source: 'marketplace', reference: { type: 'order', id: order.id },
   * })
   * if (!verdict.ok) for (const { sku, missing } of verdict.lines) console.log(sku, missing)
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_SCOPES, LEDGER_OUTCOME_UNKNOWN
   */
  issue(lines: readonly StockLine<L>[], options: StockOperationOptions): Promise<StockVerdict<A>>
  issue(
    tx: Tx,
    lines: readonly StockLine<L>[],
    options: StockOperationOptions,
  ): Promise<StockVerdict<A>>
  /** Goods come back. With `of` never more than that sale took, however many returns there are. */
  return(lines: readonly StockLine<L>[], options: ReturnOptions): Promise<StockVerdict<A>>
  return(tx: Tx, lines: readonly StockLine<L>[], options: ReturnOptions): Promise<StockVerdict<A>>
  /** Corrects what is there, up or down, and says why. What is reserved cannot be adjusted away. */
  adjust(lines: readonly StockLine<L>[], options: AdjustOptions): Promise<StockVerdict<A>>
  adjust(tx: Tx, lines: readonly StockLine<L>[], options: AdjustOptions): Promise<StockVerdict<A>>
  /** Puts goods aside for a cart. They come back by themselves when its time is over. */
  reserve(lines: readonly StockLine<L>[], options: ReserveOptions): Promise<StockVerdict<A>>
  reserve(tx: Tx, lines: readonly StockLine<L>[], options: ReserveOptions): Promise<StockVerdict<A>>
  /** Moves goods from one location to another of the same scope. Never on backorder. */
  transfer(
    lines: readonly Omit<StockLine<L>, 'location'>[],
    options: TransferOptions<L>,
  ): Promise<StockVerdict<A>>
  transfer(
    tx: Tx,
    lines: readonly Omit<StockLine<L>, 'location'>[],
    options: TransferOptions<L>,
  ): Promise<StockVerdict<A>>
  /**
   * The reserved goods leave. Keyed by the reservation: whoever settles, releases or lets it expire
   * first wins, everyone else is told how it ended.
   */
  settle(holdId: string, options?: HoldPart<L> & StockWords): Promise<Verdict<A>>
  settle(tx: Tx, holdId: string, options?: HoldPart<L> & StockWords): Promise<Verdict<A>>
  /** The reserved goods are for sale again. */
  release(holdId: string, options?: WholeLines<L> & StockWords): Promise<Verdict<A>>
  release(tx: Tx, holdId: string, options?: WholeLines<L> & StockWords): Promise<Verdict<A>>
  /** Keeps a reservation for this long from now, at least. */
  extend(holdId: string, ttl: Duration, options?: WholeLines<L>): Promise<Verdict<A>>
  extend(tx: Tx, holdId: string, ttl: Duration, options?: WholeLines<L>): Promise<Verdict<A>>
  /**
   * What there is right now. To show, not to decide by: it may be gone a moment later, and `issue`
   * and `reserve` look for themselves. @throws LEDGER_NAME_INVALID, SCHEMA_MISSING
   */
  level(sku: Key, options?: PlaceOptions<L>): Promise<StockLevel<A>>
  level(tx: Tx, sku: Key, options?: PlaceOptions<L>): Promise<StockLevel<A>>
  /** The level at each location that the stock was declared with. */
  levels(sku: Key, options?: Pick<PlaceOptions<L>, 'scope'>): Promise<readonly StockLevel<A>[]>
  levels(
    tx: Tx,
    sku: Key,
    options?: Pick<PlaceOptions<L>, 'scope'>,
  ): Promise<readonly StockLevel<A>[]>
  /** Every movement, newest first: what changed, what was left, by whom and why. */
  history(sku: Key, options?: PlaceOptions<L> & HistoryPage): Promise<History<A>>
  history(tx: Tx, sku: Key, options?: PlaceOptions<L> & HistoryPage): Promise<History<A>>
  /**
   * Takes over what another table counted so far, as opening movements. It can be run again: what was
   * taken over under this `operationId` is skipped.
   */
  open(
    rows: Iterable<StockLine<L>> | AsyncIterable<StockLine<L>>,
    options: OpeningOptions,
  ): Promise<Opened>
  /** Goods that leave together with changes of other books; see `ledger.apply`. */
  line(line: StockLine<L>): Promise<PreparedLine>
  /** What comes in as part of an operation on several books; see `ledger.apply` and `ledger.transfer`. */
  receiveLine(line: StockLine<L>): PreparedLine
}
