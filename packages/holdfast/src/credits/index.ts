import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { accountId, refTo } from '../ledger/account-id.ts'
import {
  type AmountKind,
  type AmountOf,
  amountReader,
  calledWith,
  type HoldOptions,
  holdOptions,
  type InTransaction,
  type LineOptions,
  lineOptions,
  type OperationOptions,
  operationOptions,
  type PreparedLine,
  type RefundOptions,
  refundOptions,
  single,
  type TakeOptions,
  takeOptions,
} from '../ledger/book.ts'
import { type Grant, readGrants } from '../ledger/grants.ts'
import {
  createHolds,
  type Hold,
  type Holds,
  type WithHoldOptions,
  withHold,
} from '../ledger/holds.ts'
import { invalid } from '../ledger/calendar.ts'
import { currentPeriod } from '../ledger/current-period.ts'
import type { Kernel } from '../ledger/kernel.ts'
import {
  type Amount,
  amountText,
  flags,
  type Key,
  kinds,
  type Line,
  nameText,
} from '../ledger/operation.ts'
import { rowId } from '../ledger/upkeep/opening.ts'
import type { CreditBalance } from '../ledger/reads/reading.ts'
import { readDueBalance } from '../ledger/reads/reads.ts'
import type { Verdict } from '../ledger/verdict.ts'
import { type GrantOptions, type GrantTerms, termsText } from './grant-terms.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import * as known from './options.ts'
import type {
  ChargeOptions,
  CreditBalanceOptions,
  CreditsOptions,
  GrantLineOptions,
  GrantsOptions,
  Renewal,
} from './options.ts'

export type {
  ChargeOptions,
  CreditBalanceOptions,
  CreditsOptions,
  GrantLineOptions,
  GrantsOptions,
  Renewal,
} from './options.ts'

export type { HoldOptions, LineOptions, RefundOptions } from '../ledger/book.ts'
export type { Grant, GrantState } from '../ledger/grants.ts'
export type { GrantOptions, GrantTerms, Rollover } from './grant-terms.ts'

/** Credit that comes in grants, with priority and expiry, and is never spent twice. */
export interface Credits<Tx, A, F extends string = never> extends Holds<Tx, A> {
  readonly name: string
  /**
   * Grants an amount. What the account owes is paid from it first, unless it is only for some features.
   *
   * @example
   * await credits.grant(userId, 500, { operationId: invoice.id, expiresIn: '30 days' })
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, OPTION_INVALID, SCHEMA_MISSING
   */
  grant(key: Key, amount: Amount, options: GrantOptions): Promise<Verdict<A>>
  grant(tx: Tx, key: Key, amount: Amount, options: InTransaction<GrantOptions>): Promise<Verdict<A>>
  /**
   * Spends if there is enough, from the grants in burn order: lower priority first, then earlier
   * expiry, then earlier arrival; those with `onlyFor` only for these features. A refusal changes nothing.
   *
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, SCHEMA_MISSING
   */
  spend(key: Key, amount: Amount, options: TakeOptions): Promise<Verdict<A>>
  spend(tx: Tx, key: Key, amount: Amount, options: InTransaction<TakeOptions>): Promise<Verdict<A>>
  /**
   * Spends what a feature costs by the price list, and keeps the feature with the movement.
   *
   * @example await credits.charge(userId, 'image', { quantity: 2, operationId: request.id })
   * @throws OPTION_INVALID, LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, SCHEMA_MISSING
   */
  charge(key: Key, feature: F, options: ChargeOptions): Promise<Verdict<A>>
  charge(tx: Tx, key: Key, feature: F, options: InTransaction<ChargeOptions>): Promise<Verdict<A>>
  /**
   * Grants what the current calendar period brings, once however often it is called: before spending, when somebody logs
   * in, or from a schedule. Which period it is the database's clock says. Periods that have passed are not made up for.
   *
   * @example
   * await credits.renew(userId, { amount: 1_000, per: 'month', rollover: { limit: 200, for: '31 days' } })
   * @throws OPTION_INVALID, LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, SCHEMA_MISSING
   */
  renew(key: Key, renewal: Renewal): Promise<Verdict<A>>
  renew(tx: Tx, key: Key, renewal: Renewal): Promise<Verdict<A>>
  /**
   * What a key stands at, with the overdraft it has. What is due is booked first, so that it is what the next operation
   * finds.
   */
  balance(key: Key, options?: CreditBalanceOptions): Promise<CreditBalance<A>>
  balance(tx: Tx, key: Key, options?: CreditBalanceOptions): Promise<CreditBalance<A>>
  /** Puts an estimate aside, to be settled when the cost is known. It is drawn from grants at once. */
  hold(key: Key, estimate: Amount, options: HoldOptions): Promise<Verdict<A>>
  hold(tx: Tx, key: Key, estimate: Amount, options: InTransaction<HoldOptions>): Promise<Verdict<A>>
  /**
   * Gives back what an operation spent, to the very grants that paid for it, the last one first.
   * What comes back to a grant that has ended lapses, as a movement of its own.
   */
  refund(key: Key, amount: Amount, options: RefundOptions): Promise<Verdict<A>>
  refund(
    tx: Tx,
    key: Key,
    amount: Amount,
    options: InTransaction<RefundOptions>,
  ): Promise<Verdict<A>>
  /**
   * Ends a grant now: what is neither spent nor held of it lapses. `grant` is its id, or the id of
   * the operation that made it.
   */
  voidGrant(key: Key, grant: string, options: OperationOptions): Promise<Verdict<A>>
  voidGrant(
    tx: Tx,
    key: Key,
    grant: string,
    options: InTransaction<OperationOptions>,
  ): Promise<Verdict<A>>
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
  /** A grant as part of an operation on several books; see `ledger.apply` and `ledger.transfer`. */
  grantLine(key: Key, amount: Amount, options?: GrantLineOptions): PreparedLine
}

/** Credits over the kernel. */
export function createCredits<Tx, K extends AmountKind = 'number', F extends string = never>(
  kernel: Kernel<Tx>,
  given: CreditsOptions<K, F>,
): Credits<Tx, AmountOf<K>, F> {
  type A = AmountOf<K>
  const options = optionsGiven(given, known.creditsOptions as KnownOptions<typeof given>)
  const book = nameText(options.name, 'name')
  kernel.declare(book, { as: 'credits', amounts: options.amounts ?? 'number' })
  const amounts = amountReader((options.amounts ?? 'number') as K)
  const holds = createHolds(kernel, book, options, amounts)
  const { overdraft = 0 } = options
  if (typeof overdraft !== 'function') amountText(overdraft, 'overdraft', 0n)

  /** Before anything is sent: afterwards it would have been applied. */
  const readable = (amount: unknown): void => {
    if (options.amounts === 'bigint' || typeof amount !== 'bigint') return
    if (amount > Number.MAX_SAFE_INTEGER) throw holdfastError('LEDGER_AMOUNT_UNSAFE')
  }

  const overdraftOf = async (key: Key): Promise<string> => {
    const allowed =
      typeof overdraft === 'function' ? await overdraft(nameText(key, 'key')) : overdraft
    readable(allowed)
    return amountText(allowed, 'overdraft', 0n)
  }

  /** What takes something, with the overdraft that is in force for it. */
  const taking = async (key: Key, amount: unknown, ttl?: Duration): Promise<CreditLine> => {
    const line = { book, amount: amountText(amount), allowance: await overdraftOf(key) }
    return ttl === undefined
      ? { ...line, kind: kinds.debit }
      : { ...line, kind: kinds.hold, ttlMs: durationMs(ttl, 'ttl') }
  }
  const granting = (amount: unknown, terms: GrantTerms): CreditLine => ({
    kind: kinds.grant,
    book,
    amount: amountText(amount),
    terms: termsText(terms),
  })
  const returning = (amount: unknown, of: string): CreditLine => ({
    kind: kinds.refund,
    book,
    amount: amountText(amount),
    ...refTo(nameText(of, 'of')),
  })
  const apply = (
    tx: Tx | undefined,
    line: CreditLine,
    key: Key,
    operation: OperationOptions,
  ): Promise<Verdict<A>> => kernel.apply(tx, single(line, key, operation), amounts)

  const prices = priceList(options.prices ?? {})
  const credits: Credits<Tx, A, F> = {
    name: book,
    ...holds,
    async grant(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      const options = optionsGiven(rest as GrantOptions | undefined, known.grantOptions)
      return await apply(tx, granting(amount, options), key, options)
    },
    async spend(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      const { upTo = false, ...operation } = optionsGiven(rest as TakeOptions, takeOptions)
      const line = await taking(key, amount)
      return await apply(tx, upTo ? { ...line, flags: flags.upTo } : line, key, operation)
    },
    async charge(...args: readonly unknown[]) {
      const [tx, key, feature, rest] = calledWith<Tx>(args)
      const asked = optionsGiven(rest as ChargeOptions, known.chargeOptions)
      const { quantity = 1, ...operation } = asked
      const price = prices.get(feature as string)
      if (price === undefined) throw invalid('feature', 'feature is not in the price list')
      const cost = price * BigInt(amountText(quantity, 'quantity'))
      const line = await taking(key, cost)
      return await apply(tx, line, key, { ...operation, feature: feature as string })
    },
    async renew(...args: readonly unknown[]) {
      const [tx, key, rest] = calledWith<Tx>(args)
      const {
        plan = 'renewal',
        amount,
        per,
        timeZone,
        scope,
        note,
        ...terms
      } = optionsGiven(rest as Renewal | undefined, known.renewal)
      const { bucket } = accountId(nameText(scope ?? key, 'scope'), book, nameText(key, 'key'))
      // Before the period is asked for: what cannot be granted is told at once.
      granting(amount, { ...terms, expiresIn: 1 })
      nameText(plan, 'plan')
      const { start, end } = await currentPeriod(kernel, tx, bucket, per, timeZone)
      // The amount is part of what is granted and not of the name: another amount in the same period is a conflict.
      const period = JSON.stringify(['renew', nameText(plan, 'plan'), start.getTime()])
      const operationId = rowId(period, nameText(key, 'key'))
      const operation = {
        operationId,
        ...(scope === undefined ? {} : { scope }),
        ...(note === undefined ? {} : { note }),
      }
      return await apply(tx, granting(amount, { ...terms, expiresAt: end }), key, operation)
    },
    async balance(...args: readonly unknown[]) {
      const [tx, key, rest] = calledWith<Tx>(args)
      return await readDueBalance(
        kernel,
        tx,
        {
          book,
          key,
          ...optionsGiven(rest as CreditBalanceOptions | undefined, known.balanceOptions),
        },
        await overdraftOf(key),
        amounts,
      )
    },
    async hold(...args: readonly unknown[]) {
      const [tx, key, estimate, rest] = calledWith<Tx>(args)
      const { ttl, ...operation } = optionsGiven(rest as HoldOptions | undefined, holdOptions)
      const line = await taking(key, estimate, durationMs(ttl, 'ttl'))
      return await apply(tx, line, key, operation)
    },
    async refund(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      const { of, ...operation } = optionsGiven(rest as RefundOptions | undefined, refundOptions)
      return await apply(tx, returning(amount, of), key, operation)
    },
    async voidGrant(...args: readonly unknown[]) {
      const [tx, key, grant, rest] = calledWith<Tx>(args)
      const ref = refTo(nameText(grant, 'grant'))
      return await apply(
        tx,
        { kind: kinds.void, book, amount: '0', ...ref },
        key,
        optionsGiven(rest as OperationOptions | undefined, operationOptions),
      )
    },
    async grants(...args: readonly unknown[]) {
      const [tx, key, rest] = calledWith<Tx>(args)
      const { scope, ended = false } = optionsGiven(
        rest as GrantsOptions | undefined,
        known.grantsOptions,
      )
      const keyText = nameText(key, 'key')
      const account = accountId(nameText(scope ?? keyText, 'scope'), book, keyText)
      return await readGrants(kernel, tx, book, account, ended === true, amounts)
    },
    withHold: (key, rest, body) =>
      withHold(
        holds,
        (holdKey, { estimate, ...operation }) => credits.hold(holdKey, estimate, operation),
        key,
        rest,
        body,
      ),
    async line(key, amount, given) {
      const { scope, ttl, of } = optionsGiven(given, lineOptions)
      assertOneOf({ ttl, of }, 'ttl', 'of')
      const line = of === undefined ? await taking(key, amount, ttl) : returning(amount, of)
      return { line: { ...line, key: nameText(key, 'key'), scope } }
    },
    grantLine(key, amount, given) {
      const { scope, ...terms } = optionsGiven(given, known.grantLineOptions)
      return { line: { ...granting(amount, terms), key: nameText(key, 'key'), scope } }
    },
  }
  return credits
}

/** A line without the account it is for. */
type CreditLine = Omit<Line, 'key' | 'scope'>

/** @throws LEDGER_NAME_INVALID, LEDGER_AMOUNT_INVALID */
function priceList(prices: Readonly<Record<string, Amount>>): ReadonlyMap<string, bigint> {
  return new Map(
    Object.entries(prices).map(([feature, price]) => [
      nameText(feature, 'feature'),
      BigInt(amountText(price as Amount, 'prices')),
    ]),
  )
}
