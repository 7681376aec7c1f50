import { type ShortWay, withShortWay } from '../core/activity.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { accountId, refTo } from '../ledger/account-id.ts'
import {
  type AmountKind,
  type AmountOf,
  amountReader,
  amounts,
  holdOptions as anyHoldOptions,
  calledWith,
  type InTransaction,
  type LineOptions,
  lineOptions,
  type PreparedLine,
  type RefundOptions,
  refundOptions,
  single,
  type TakeOptions,
  takeOptions,
} from '../ledger/book.ts'
import type { BookDeclaration } from '../ledger/declaration.ts'
import {
  createHolds,
  type Hold,
  type HoldPolicy,
  type Holds,
  late,
  overrun,
  withHold,
  type WithHoldOptions,
} from '../ledger/holds.ts'
import { invalid } from '../ledger/calendar.ts'
import type { Kernel } from '../ledger/kernel.ts'
import { type Amount, amountText, flags, type Key, kinds, nameText } from '../ledger/operation.ts'
import type { Verdict } from '../ledger/verdict.ts'
import { DenyCache, type DenyCacheOptions, denyCacheOptions } from './deny-cache.ts'
import { createQuotaUpkeep, type QuotaUpkeep } from './quota-upkeep.ts'
import { type QuotaLine, type Window, windowOf } from './window.ts'
import { objectGiven } from '../core/options/given.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

export type { LineOptions, RefundOptions } from '../ledger/book.ts'
export type { DenyCacheOptions } from './deny-cache.ts'
export type { PeekOptions, QuotaUpkeep, UsedRow } from './quota-upkeep.ts'
export type { Period } from '../ledger/calendar.ts'
export type { CalendarWindow, RateWindow, RollingWindow, Window } from './window.ts'

/** Declares a quota. */
export type QuotaOptions<K extends AmountKind = 'number'> = Window &
  HoldPolicy & {
    /** Name of the book; the same name is the same quota in every process. */
    readonly name: string
    /** One limit for all, or a function of the key. A limit set for a key by `setLimit` wins. */
    readonly limit: Amount | ((key: string) => Amount | Promise<Amount>)
    /**
     * Whether what goes beyond the limit is taken as well: `available` is below zero then, and `over` of `ledger.usage`
     * says how much it was. With `per`. @defaultValue false
     */
    readonly overage?: boolean
    /** @defaultValue 'number' */
    readonly amounts?: K
    /**
     * Repeats refusals for a short time without asking the database, for calls with
     * `freshId: true`. Declare the quota once per process: the cache belongs to it.
     * @defaultValue none
     */
    readonly denyCache?: DenyCacheOptions
  }

/** Options of `consume`. */
export interface ConsumeOptions extends TakeOptions {
  /**
   * The operation id was made for this call and was never sent before, so a remembered refusal may
   * answer it. Never say so of a retry: it might have been accepted the first time.
   * @defaultValue false
   */
  readonly freshId?: boolean
}

/** Options of `hold`. */
export interface HoldOptions extends Omit<ConsumeOptions, 'upTo'> {
  /** How long it lives if nobody ends it, on the server's clock. */
  readonly ttl: Duration
}

const quotaOptions: KnownOptions<QuotaOptions<AmountKind>> = {
  name: 'checked',
  limit: 'checked',
  per: 'checked',
  timeZone: 'checked',
  rolling: 'checked',
  rate: 'checked',
  burst: 'checked',
  overage: 'boolean',
  amounts: amounts,
  denyCache: denyCacheOptions,
  overrun: overrun,
  late: late,
}

const consumeOptions: KnownOptions<ConsumeOptions> = {
  ...takeOptions,
  freshId: 'boolean',
}

const holdOptions: KnownOptions<HoldOptions> = {
  ...anyHoldOptions,
  freshId: 'boolean',
}

/** `used + cost <= limit`, exact under any concurrency. */
export interface Quota<Tx, A> extends Holds<Tx, A>, QuotaUpkeep<Tx, A> {
  readonly name: string
  /**
   * Uses up `cost` if it fits. A refusal changes nothing.
   *
   * @example
   * const verdict = await calls.consume(userId, 1, { operationId: request.id })
   * if (!verdict.ok) return reply.code(429).send({ retryAt: verdict.retryAt })
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN, SCHEMA_MISSING
   */
  consume(key: Key, cost: Amount, options: ConsumeOptions): Promise<Verdict<A>>
  consume(tx: Tx, key: Key, cost: Amount, options: InTransaction<TakeOptions>): Promise<Verdict<A>>
  /** Puts an estimate aside, to be settled when the cost is known. */
  hold(key: Key, estimate: Amount, options: HoldOptions): Promise<Verdict<A>>
  hold(tx: Tx, key: Key, estimate: Amount, options: InTransaction<HoldOptions>): Promise<Verdict<A>>
  /** Gives back what an operation used, to the window it was taken from; never more than it took. */
  refund(key: Key, amount: Amount, options: RefundOptions): Promise<Verdict<A>>
  refund(
    tx: Tx,
    key: Key,
    amount: Amount,
    options: InTransaction<RefundOptions>,
  ): Promise<Verdict<A>>
  /**
   * Reserves, runs the body, settles; releases if the body throws; expires if the process dies.
   *
   * @example
   * await tokens.withHold(userId, { estimate: 500, ttl: '2 min', operationId }, async (hold) => {
   *   const answer = await model.complete(prompt, { signal: hold.signal })
   *   await hold.settle(answer.tokens)
   * })
   * @throws LEDGER_HOLD_REFUSED
   */
  withHold<T>(key: Key, options: WithHoldOptions, body: (hold: Hold<A>) => Promise<T>): Promise<T>
  /** One limit of an operation that is under several; see `ledger.apply`. */
  line(key: Key, amount: Amount, options?: LineOptions): Promise<PreparedLine>
}

/** A quota over the kernel. */
export function createQuota<Tx, K extends AmountKind = 'number'>(
  kernel: Kernel<Tx>,
  given: QuotaOptions<K>,
): Quota<Tx, AmountOf<K>> {
  const options = optionsGiven(given, quotaOptions as KnownOptions<typeof given>)
  type A = AmountOf<K>
  const book = nameText(options.name, 'name')
  const window = windowOf(options)
  kernel.declare(book, declarationOf(options))
  const amounts = amountReader((options.amounts ?? 'number') as K)
  const cache =
    options.denyCache === undefined
      ? undefined
      : new DenyCache<A>(book, objectGiven(options.denyCache, 'denyCache'))
  const holds = holdsOf(createHolds(kernel, book, options, amounts), window.rollingMs, cache)

  if (typeof options.limit !== 'function') amountText(options.limit, 'limit', 0n)
  const beyond = options.overage === true ? { flags: flags.unchecked } : {}
  if (options.overage === true && options.per === undefined) {
    throw invalid('overage', 'overage goes with per: a rate or a rolling window would never refuse')
  }

  const limitText = (limit: Amount): string => {
    // Before anything is sent: afterwards it would have been applied.
    if (
      options.amounts !== 'bigint' &&
      typeof limit === 'bigint' &&
      limit > Number.MAX_SAFE_INTEGER
    ) {
      throw holdfastError('LEDGER_AMOUNT_UNSAFE')
    }
    return amountText(limit, 'limit', 0n)
  }
  /** At once, unless somebody has to be asked: an await costs as much as all the rest of a line. */
  const limitOf = (key: string): string | Promise<string> => {
    if (typeof options.limit !== 'function') return limitText(options.limit)
    const limit = options.limit(key)
    return typeof limit === 'object' && limit !== null ? limit.then(limitText) : limitText(limit)
  }
  /** What uses up or puts aside under a limit. */
  const taking = (limit: string, amount: Amount, ttlMs: number | undefined): QuotaLine => {
    const kind = ttlMs === undefined && window.rollingMs === undefined ? kinds.debit : kinds.hold
    const line = { kind, book, amount: amountText(amount), ...window.line(limit), ...beyond }
    return ttlMs === undefined ? line : { ...line, ttlMs }
  }
  /** What gives back. The window it was taken from is known to the database. */
  const returning = (amount: Amount, of: string): QuotaLine => {
    assertHolds(window.rollingMs)
    const ref = refTo(nameText(of, 'of'))
    return { kind: kinds.refund, book, amount: amountText(amount), ...ref }
  }
  const bucketOf = (key: Key, scope: string | undefined): number =>
    accountId(scope ?? String(key), book, String(key)).bucket

  const take = async (
    tx: Tx | undefined,
    key: Key,
    amount: Amount,
    operation: ConsumeOptions,
    ttlMs?: number,
  ): Promise<Verdict<A>> => {
    if (ttlMs !== undefined) assertHolds(window.rollingMs)
    const asked = limitOf(nameText(key, 'key'))
    const limit = typeof asked === 'string' ? asked : await asked
    const { upTo = false } = operation
    if (upTo) assertHolds(window.rollingMs)
    const line = taking(limit, amount, ttlMs)
    const request = single(upTo ? { ...line, flags: flags.upTo } : line, key, operation)
    if (cache === undefined || tx !== undefined || upTo) {
      return await kernel.apply(tx, request, amounts)
    }
    const account = accountId(operation.scope ?? String(key), book, String(key))
    const { freshId: isNew = false } = operation
    const question = { account, cost: BigInt(amount), limit: BigInt(limit), isNew }
    return await cache.answer(question, async () => await kernel.apply(tx, request, amounts))
  }

  const short = kernel.short(book, kinds.debit)
  const fixedLimit = isFixed(options) && cache === undefined ? Number(options.limit) : undefined
  /** What `consume` asks for most of the time: nothing but a key, a number and an id. */
  const shortly: ShortWay = ([key, cost, asked], crowd) => {
    if (fixedLimit === undefined || typeof key !== 'string' || !isCount(cost)) return undefined
    const operationId = onlyId(asked)
    if (operationId === undefined) return undefined
    return short(key, cost, fixedLimit, operationId, crowd)
  }

  const quota: Quota<Tx, A> = {
    name: book,
    ...holds,
    ...createQuotaUpkeep(kernel, {
      book,
      window,
      beyond,
      amounts,
      limitOf,
      changed: (key, scope) => cache?.forget(bucketOf(key, scope)),
    }),
    consume: withShortWay(async (...args: readonly unknown[]) => {
      const [tx, key, cost, rest] = calledWith<Tx>(args)
      const asked = optionsGiven(rest as ConsumeOptions | undefined, consumeOptions)
      return await take(tx, key, cost as Amount, asked)
    }, shortly),
    async hold(...args: readonly unknown[]) {
      const [tx, key, estimate, rest] = calledWith<Tx>(args)
      const options = optionsGiven(rest as HoldOptions | undefined, holdOptions)
      return await take(tx, key, estimate as Amount, options, durationMs(options.ttl, 'ttl'))
    },
    async refund(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      const asked = optionsGiven(rest as RefundOptions | undefined, refundOptions)
      const { of, ...operation } = asked
      const request = single(returning(amount as Amount, of), key, operation)
      try {
        return await kernel.apply(tx, request, amounts)
      } finally {
        cache?.forget(bucketOf(key, operation.scope))
      }
    },
    withHold: (key, rest, body) =>
      withHold(
        holds,
        (holdKey, { estimate, ...operation }) => quota.hold(holdKey, estimate, operation),
        key,
        rest,
        body,
      ),
    async line(key, amount, given) {
      const { scope, ttl, of } = optionsGiven(given, lineOptions)
      assertOneOf({ ttl, of }, 'ttl', 'of')
      if (ttl !== undefined) assertHolds(window.rollingMs)
      const ttlMs = ttl === undefined ? undefined : durationMs(ttl, 'ttl')
      const line =
        of === undefined
          ? taking(await limitOf(nameText(key, 'key')), amount, ttlMs)
          : returning(amount, of)
      return {
        line: { ...line, key: nameText(key, 'key'), scope },
        after:
          of === undefined
            ? undefined
            : (operationScope) => cache?.forget(bucketOf(key, scope ?? operationScope)),
      }
    },
  }
  return quota
}

/** One limit for all, for ever, that is exact as a number. */
function isFixed({ limit, per, amounts, overage }: QuotaOptions<AmountKind>): boolean {
  return (
    Number.isSafeInteger(limit) && per === 'lifetime' && amounts !== 'bigint' && overage !== true
  )
}

function isCount(cost: unknown): cost is number {
  return Number.isSafeInteger(cost) && (cost as number) > 0
}

/** The operation id, if the options have nothing else. */
function onlyId(asked: unknown): string | undefined {
  if (typeof asked !== 'object' || asked === null) return undefined
  for (const name in asked) if (name !== 'operationId') return undefined
  const { operationId } = asked as Partial<ConsumeOptions>
  return typeof operationId === 'string' ? operationId : undefined
}

function declarationOf(options: QuotaOptions<AmountKind>): BookDeclaration {
  const { amounts = 'number' } = options
  if (options.rolling !== undefined) return { as: 'quota', rolling: options.rolling, amounts }
  if (options.rate !== undefined) return { as: 'quota', rate: options.rate, amounts }
  const { per, timeZone } = options
  return per === 'lifetime' || timeZone === undefined
    ? { as: 'quota', per, amounts }
    : { as: 'quota', per, timeZone, amounts }
}

/** Whatever ends a hold may make room. */
function holdsOf<Tx, A>(
  holds: Holds<Tx, A>,
  rollingMs: number | undefined,
  cache: DenyCache<A> | undefined,
): Holds<Tx, A> {
  const ending = async (
    args: readonly unknown[],
    end: (...args: never[]) => Promise<Verdict<A>>,
  ): Promise<Verdict<A>> => {
    try {
      return await end(...(args as never[]))
    } finally {
      const holdId = args.find((arg) => typeof arg === 'string')
      if (holdId !== undefined) cache?.forget(Number.parseInt(holdId.slice(0, 3), 16))
    }
  }
  return {
    late: holds.late,
    async settle(...args: readonly unknown[]) {
      assertHolds(rollingMs)
      return await ending(args, holds.settle)
    },
    release: async (...args: readonly unknown[]) => await ending(args, holds.release),
    async extend(...args: readonly unknown[]) {
      assertHolds(rollingMs)
      return await holds.extend(...(args as Parameters<typeof holds.extend>))
    },
  }
}

/** What was settled would stay in a rolling window for ever. */
function assertHolds(rollingMs: number | undefined): void {
  if (rollingMs === undefined) return
  throw invalid(
    'rolling',
    'a rolling window has no holds, no refunds and no upTo: release(verdict.holdId) gives back what was used',
  )
}
