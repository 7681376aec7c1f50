/** A balance as one operation left it. */
export interface Balance<A> {
  /** What can still be taken: credited − debited − held + allowance. */
  readonly available: A
  readonly credited: A
  readonly debited: A
  readonly held: A
  /** The limit, overdraft or backorder in force. */
  readonly allowance: A
  /** Number of the account's last movement; gapless. */
  readonly sequence: A
}

/** Why an operation, or a line of it, was refused. Nothing was changed. */
export type Refusal =
  /** Not enough is available. */
  | 'insufficient'
  /** The operation id was used for something else; `field` says what differs. */
  | 'conflict'
  /** There is no such hold, or no operation to refund. */
  | 'not-found'
  /** The hold or grant has ended; `state` says how. */
  | 'ended'
  /** A counter would become larger than it can be, or than a number can be exact. */
  | 'too-large'
  /** More than is left of the refunded operation. */
  | 'over-refund'

/** What became of a hold. */
export type HoldState = 'open' | 'settled' | 'released' | 'expired' | 'settled-late'

/** One account's part in an operation. */
export interface LineVerdict<A> extends Balance<A> {
  readonly book: string
  readonly key: string | undefined
  /** Undefined for a line that was accepted, or would have been if the others had. */
  readonly refusal: Refusal | undefined
}

/**
 * The operation was not applied; nothing changed. Balances are those of the first refused line, for people:
 * they may be a moment younger than the decision, which needs no lock where there plainly is too little.
 */
export interface Refused<A> extends Balance<A> {
  readonly ok: false
  readonly reason: Refusal
  /** The book and key that stood in the way. */
  readonly book: string
  readonly key: string | undefined
  /** What could have been taken: of credits, `available` without the grants that are only for other features. */
  readonly spendable: A
  /** When the same request may fit; undefined if nothing is known to come back by itself. */
  readonly retryAt: Date | undefined
  /** Of a conflict: what differs from the first use of the operation id. */
  readonly field: string | undefined
  /** Of a hold or grant that has ended: how. */
  readonly state: HoldState | 'voided' | undefined
  /** This refusal is remembered from before. */
  readonly replayed: boolean
  readonly lines: readonly LineVerdict<A>[]
}
