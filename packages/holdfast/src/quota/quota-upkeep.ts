import { accountId } from '../ledger/account-id.ts'
import { adjustment, type AdjustOptions, adjustOptions } from '../ledger/adjusting.ts'
import {
  calledWith,
  type InTransaction,
  type OperationOptions,
  operationOptions,
  single,
} from '../ledger/book.ts'
import { invalid } from '../ledger/calendar.ts'
import type { Kernel } from '../ledger/kernel.ts'
import { setLimit } from '../ledger/limit.ts'
import {
  assertRows,
  type Opened,
  type OpeningOptions,
  openAccounts,
} from '../ledger/upkeep/opening.ts'
import {
  type Amount,
  amountText,
  type Key,
  kinds,
  type Line,
  nameText,
} from '../ledger/operation.ts'
import { type Peek, peek } from '../ledger/reads/peek.ts'
import type { AmountReader, Verdict } from '../ledger/verdict.ts'
import { type WindowLines } from './window.ts'
import { objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** Options of `peek`. */
export interface PeekOptions {
  /** What `retryAt` is about. @defaultValue 1 */
  readonly cost?: Amount
  /** The scope it is used with. @defaultValue the key */
  readonly scope?: string
}

const peekOptions: KnownOptions<PeekOptions> = {
  cost: 'checked',
  scope: 'checked',
}

/** How much of a quota was used before its history here begins. */
export interface UsedRow {
  readonly key: Key
  /** In the current window. */
  readonly used: Amount
  /** @defaultValue the key */
  readonly scope?: string
}

/** What looks after a quota. */
export interface QuotaUpkeep<Tx, A> {
  /**
   * What a `consume` would find: limit, use, and when a cost will fit. Changes nothing, and promises
   * nothing: another caller may be faster.
   *
   * @throws LEDGER_NAME_INVALID, LEDGER_AMOUNT_INVALID, SCHEMA_MISSING
   */
  peek(key: Key, options?: PeekOptions): Promise<Peek<A>>
  peek(tx: Tx, key: Key, options?: PeekOptions): Promise<Peek<A>>
  /**
   * Sets the limit of one key, from now on and in windows to come, whatever the quota declares; `null`
   * goes back to what it declares. Below what is used it only stops what comes next. Not for rates.
   *
   * @example await calls.setLimit(customerId, 10_000, { operationId: `plan-${plan.id}` })
   * @throws LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, OPTION_INVALID, LEDGER_OUTCOME_UNKNOWN
   */
  setLimit(
    key: Key,
    limit: Amount | null,
    options: InTransaction<OperationOptions>,
  ): Promise<Verdict<A>>
  setLimit(
    tx: Tx,
    key: Key,
    limit: Amount | null,
    options: InTransaction<OperationOptions>,
  ): Promise<Verdict<A>>
  /**
   * Corrects what is left in the current window: above zero gives, below zero takes, whatever the
   * limit. Says why. Not for rolling windows.
   *
   * @throws OPTION_INVALID, LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN
   */
  adjust(key: Key, amount: Amount, options: AdjustOptions): Promise<Verdict<A>>
  adjust(
    tx: Tx,
    key: Key,
    amount: Amount,
    options: InTransaction<AdjustOptions>,
  ): Promise<Verdict<A>>
  /**
   * Imports what was used before, into the current window, whatever the limit. May be run again under
   * the same `operationId` after it stopped half-way. Not for rates and rolling windows.
   *
   * @throws OPTION_INVALID, LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN
   */
  open(rows: Iterable<UsedRow> | AsyncIterable<UsedRow>, options: OpeningOptions): Promise<Opened>
}

/** What `createQuota` knows about its quota. */
export interface QuotaCore<A> {
  readonly book: string
  readonly window: WindowLines
  /** Said by every line of a quota that may be gone beyond. */
  readonly beyond: Pick<Line, 'flags'>
  readonly amounts: AmountReader<A>
  limitOf(key: string): string | Promise<string>
  /** There may be more room than the process remembers. */
  changed(key: Key, scope: string | undefined): void
}

export function createQuotaUpkeep<Tx, A>(
  kernel: Kernel<Tx>,
  { book, window, beyond, amounts, limitOf, changed }: QuotaCore<A>,
): QuotaUpkeep<Tx, A> {
  const isRate = window.line('1').everyUs !== undefined
  const assertCounted = (): void => {
    if (window.rollingMs === undefined) return
    throw invalid('rolling', 'what is booked at once would stay in a rolling window for ever')
  }
  const place = (): { book: string; unit?: string | undefined; zone?: string | undefined } => {
    const { unit, zone } = window.line('1')
    return { book, unit, zone }
  }
  return {
    async peek(...args: readonly unknown[]) {
      const [tx, key, options] = calledWith<Tx>(args)
      const { cost = 1, scope } = optionsGiven(options as PeekOptions | undefined, peekOptions)
      const keyText = nameText(key, 'key')
      const home = scope === undefined ? keyText : nameText(scope, 'scope')
      const amount = amountText(cost, 'cost')
      const line = { ...window.line(await limitOf(keyText)), ...beyond, book, amount }
      return await peek(kernel, tx, accountId(home, book, keyText), line, amounts)
    },
    async setLimit(...args: readonly unknown[]) {
      const [tx, key, asked, rest] = calledWith<Tx>(args)
      if (isRate) throw invalid('limit', 'a rate has no limits by key: declare it as a function')
      const options = optionsGiven(rest as OperationOptions | undefined, operationOptions)
      const declared = await limitOf(nameText(key, 'key'))
      const limit = asked === null ? declared : amountText(asked, 'limit', 0n)
      // Before it is sent: afterwards it would have been applied.
      amounts.read(limit)
      const line = { ...place(), kind: kinds.limit, allowance: limit }
      const change = { operation: single(line, key, options), pinned: asked !== null }
      try {
        return await setLimit(kernel, tx, change, amounts)
      } finally {
        changed(key, options.scope)
      }
    },
    async adjust(...args: readonly unknown[]) {
      const [tx, key, amount, rest] = calledWith<Tx>(args)
      assertCounted()
      const options = optionsGiven(rest as AdjustOptions | undefined, adjustOptions)
      const operation = adjustment(place(), key, amount as Amount, options)
      try {
        return await kernel.apply(tx, operation, amounts)
      } finally {
        changed(key, options.scope)
      }
    },
    async open(rows, options) {
      assertCounted()
      if (isRate) throw invalid('rate', 'a rate has nothing to import: it fills up by itself')
      return await openAccounts(kernel, place(), owedBy(rows), options)
    },
  }
}

/** What was used is a balance below zero, under the limit that comes with the next operation. */
async function* owedBy(
  rows: Iterable<UsedRow> | AsyncIterable<UsedRow>,
): AsyncGenerator<{ key: Key; balance: bigint; scope?: string }> {
  assertRows(rows)
  for await (const each of rows) {
    const { used, ...row } = objectGiven(each, 'rows')
    yield { ...row, balance: -BigInt(amountText(used, 'used', 0n)) }
  }
}
