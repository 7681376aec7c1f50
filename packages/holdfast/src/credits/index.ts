import { type Duration, durationMs } from '../core/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { accountId, operationUuid } from '../ledger/account-id.ts'
import {
  type AmountKind,
  type AmountOf,
  amountReader,
  calledWith,
  type LineOptions,
  type OperationOptions,
  type PreparedLine,
  single,
} from '../ledger/book.ts'
import { type Grant, readGrants } from '../ledger/grants.ts'
import {
  createHolds,
  type Hold,
  type HoldPolicy,
  type Holds,
  type WithHoldOptions,
  withHold,
} from '../ledger/holds.ts'
import type { Kernel } from '../ledger/index.ts'
import {
  type Amount,
  amountText,
  type Key,
  kinds,
  type Line,
  nameText,
} from '../ledger/operation.ts'
import type { Verdict } from '../ledger/verdict.ts'
import { type GrantOptions, termsText } from './grant-terms.ts'

export type { LineOptions } from '../ledger/book.ts'
export type { Grant, GrantState } from '../ledger/grants.ts'
export type { GrantOptions, Rollover } from './grant-terms.ts'

/** Declares a book of credits. */
export interface CreditsOptions<K extends AmountKind = 'number'> extends HoldPolicy {
  /** Name of the book; the same name is the same credits in every process. */
  readonly name: string
  /**
   * How far an account may go below zero, one for all or by key. The next grant pays what is owed
   * first. @defaultValue 0
   */
  readonly overdraft?: Amount | ((key: string) => Amount | Promise<Amount>)
  /** @defaultValue 'number' */
  readonly amounts?: K
}

/** Options of `hold`. */
export interface HoldOptions extends OperationOptions {
  /** How long it lives if nobody ends it, on the server's clock. */
  readonly ttl: Duration
}

/** Options of `refund`. */
export interface RefundOptions extends OperationOptions {
  /** The spending or hold that is given back, wholly or in part; never more than it took. */
  readonly of: string
}

/** Options of `grants`. */
export interface GrantsOptions {
  /** @defaultValue the key */
  readonly scope?: string
  /** Also those that are spent, expired or voided. @defaultValue false */
  readonly ended?: boolean
}

/** Credit that comes in grants, with priority and expiry, and is never spent twice. */
export interface Credits<Tx, A> extends Holds<Tx, A> {
  readonly name: string
  /**
   * Grants an amount. What the account owes is paid from it first.
   *
   * @example
   * await credits.grant(userId, 500, { operationId: invoice.id, expiresIn: '30 days' })
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, OPTION_INVALID, SCHEMA_MISSING
   */
  grant(key: Key, amount: Amount, options: GrantOptions): Promise<Verdict<A>>
  grant(tx: Tx, key: Key, amount: Amount, options: GrantOptions): Promise<Verdict<A>>
  /**
   * Spends if there is enough, from the grants in burn order: lower priority first, then earlier
   * expiry, then earlier arrival. A refusal changes nothing.
   *
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, SCHEMA_MISSING
   */
  spend(key: Key, amount: Amount, options: OperationOptions): Promise<Verdict<A>>
  spend(tx: Tx, key: Key, amount: Amount, options: OperationOptions): Promise<Verdict<A>>
  /** Puts an estimate aside, to be settled when the cost is known. It is drawn from grants at once. */
  hold(key: Key, estimate: Amount, options: HoldOptions): Promise<Verdict<A>>
  hold(tx: Tx, key: Key, estimate: Amount, options: HoldOptions): Promise<Verdict<A>>
  /**
   * Gives back what an operation spent, to the very grants that paid for it, the last one first.
   * What comes back to a grant that has ended lapses, as a movement of its own.
   */
  refund(key: Key, amount: Amount, options: RefundOptions): Promise<Verdict<A>>
  refund(tx: Tx, key: Key, amount: Amount, options: RefundOptions): Promise<Verdict<A>>
  /**
   * Ends a grant now: what is neither spent nor held of it lapses. `grant` is its id, or the id of
   * the operation that made it.
   */
  voidGrant(key: Key, grant: string, options: OperationOptions): Promise<Verdict<A>>
  voidGrant(tx: Tx, key: Key, grant: string, options: OperationOptions): Promise<Verdict<A>>
  /**
   * The grants of which something is left and those to come, in burn order; at most 1000. What is
   * due is booked first.
   */
  grants(key: Key, options?: GrantsOptions): Promise<readonly Grant<A>[]>
  grants(tx: Tx, key: Key, options?: GrantsOptions): Promise<readonly Grant<A>[]>
  /**
   * Reserves, runs the body, settles; releases if the body throws; expires if the process dies.
   *
   * @example
   * await credits.withHold(userId, { estimate: 500, ttl: '2 min', operationId }, async (hold) => {
   *   const answer = await model.complete(prompt, { signal: hold.signal })
   *   await hold.settle(answer.cost)
   * })
   * @throws LEDGER_HOLD_REFUSED
   */
  withHold<T>(key: Key, options: WithHoldOptions, body: (hold: Hold<A>) => Promise<T>): Promise<T>
  /** A spending as part of an operation on several books; see `ledger.apply`. */
  line(key: Key, amount: Amount, options?: LineOptions): Promise<PreparedLine>
}

/** Credits over the kernel. */
export function createCredits<Tx, K extends AmountKind = 'number'>(
  kernel: Kernel<Tx>,
  options: CreditsOptions<K>,
): Credits<Tx, AmountOf<K>> {
  type A = AmountOf<K>
  const book = nameText(options.name, 'book')
  const amounts = amountReader((options.amounts ?? 'number') as K)
  const holds = createHolds(kernel, book, options, amounts)
  const { overdraft = 0 } = options

  /** Before anything is sent: afterwards it would have been applied. */
  const readable = (amount: unknown): void => {
    if (options.amounts === 'bigint' || typeof amount !== 'bigint') return
    if (amount > Number.MAX_SAFE_INTEGER) throw holdfastError('LEDGER_AMOUNT_UNSAFE')
  }

  /** What takes something, with the overdraft that is in force for it. */
  const taking = async (key: Key, amount: unknown, ttl?: Duration): Promise<CreditLine> => {
    const allowed =
      typeof overdraft === 'function' ? await overdraft(nameText(key, 'key')) : overdraft
    readable(allowed)
    const line = {
      book,
      amount: amountText(amount),
      allowance: amountText(allowed, 'overdraft', 0n),
    }
    return ttl === undefined
      ? { ...line, kind: kinds.debit }
      : { ...line, kind: kinds.hold, ttlMs: durationMs(ttl, 'ttl') }
  }
  const returning = (amount: unknown, of: string): CreditLine => ({
    kind: kinds.refund,
    book,
    amount: amountText(amount),
    ref: operationUuid(nameText(of, 'operationId')),
  })
  const apply = (
    tx: Tx | undefined,
    line: CreditLine,
    key: Key,
    operation: OperationOptions,
  ): Promise<Verdict<A>> => kernel.apply(tx, single(line, key, operation), amounts)

  const credits: Credits<Tx, A> = {
    name: book,
    ...holds,
    async grant(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      const options = rest as GrantOptions
      const line = {
        kind: kinds.grant,
        book,
        amount: amountText(amount),
        terms: termsText(options),
      }
      return await apply(tx, line, key, options)
    },
    async spend(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      return await apply(tx, await taking(key, amount), key, rest as OperationOptions)
    },
    async hold(...args: readonly unknown[]) {
      const [tx, key, estimate, rest] = calledWith<Tx>(args)
      const { ttl, ...operation } = rest as HoldOptions
      const line = await taking(key, estimate, durationMs(ttl, 'ttl'))
      return await apply(tx, line, key, operation)
    },
    async refund(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      const { of, ...operation } = rest as RefundOptions
      return await apply(tx, returning(amount, of), key, operation)
    },
    async voidGrant(...args: readonly unknown[]) {
      const [tx, key, grant, rest] = calledWith<Tx>(args)
      const ref = operationUuid(nameText(grant, 'operationId'))
      return await apply(
        tx,
        { kind: kinds.void, book, amount: '0', ref },
        key,
        rest as OperationOptions,
      )
    },
    async grants(...args: readonly unknown[]) {
      const [tx, key, rest] = calledWith<Tx>(args)
      const { scope, ended = false } = (rest ?? {}) as GrantsOptions
      const keyText = nameText(key, 'key')
      const account = accountId(nameText(scope ?? keyText, 'scope'), book, keyText)
      return await readGrants(kernel, tx, account, ended, amounts)
    },
    withHold: (key, rest, body) =>
      withHold(
        holds,
        (holdKey, { estimate, ...operation }) => credits.hold(holdKey, estimate, operation),
        key,
        rest,
        body,
      ),
    async line(key, amount, { scope, ttl, of } = {}) {
      const line = of === undefined ? await taking(key, amount, ttl) : returning(amount, of)
      return { line: { ...line, key: nameText(key, 'key'), scope } }
    },
  }
  return credits
}

/** A line without the account it is for. */
type CreditLine = Omit<Line, 'key' | 'scope'>
