import type { KnownOptions } from '../core/options/known-options.ts'
import {
  type AmountKind,
  amounts,
  type OperationOptions,
  operationOptions,
} from '../ledger/book.ts'
import type { GrantOptions, GrantTerms, Rollover } from './grant-terms.ts'
import { type HoldPolicy, late, overrun } from '../ledger/holds.ts'
import type { Amount } from '../ledger/operation.ts'
import type { Period } from '../ledger/calendar.ts'

/** Declares a book of credits. */
export interface CreditsOptions<K extends AmountKind = 'number', F extends string = never>
  extends HoldPolicy {
  /** Name of the book; the same name is the same credits in every process. */
  readonly name: string
  /**
   * How far an account may go below zero, one for all or by key. The next grant pays what is owed
   * first. @defaultValue 0
   */
  readonly overdraft?: Amount | ((key: string) => Amount | Promise<Amount>)
  /** What one unit of each feature costs; see `charge`. */
  readonly prices?: Readonly<Record<F, Amount>>
  /** @defaultValue 'number' */
  readonly amounts?: K
}

/** Options of `charge`. */
export interface ChargeOptions extends Omit<OperationOptions, 'feature'> {
  /** How many units. @defaultValue 1 */
  readonly quantity?: Amount
}

/** Options of `grantLine`. */
export interface GrantLineOptions extends GrantTerms {
  /** @defaultValue the scope of the operation, else the key */
  readonly scope?: string
}

/** Options of `grants`. */
export interface GrantsOptions {
  /** @defaultValue the key */
  readonly scope?: string
  /** Also those that are spent, expired or voided. @defaultValue false */
  readonly ended?: boolean
}

/** Options of `balance`. */
export interface CreditBalanceOptions {
  /** @defaultValue the key */
  readonly scope?: string
  /** What `spendable` is asked for. @defaultValue none, so that it leaves out all grants with `onlyFor` */
  readonly feature?: string
}

/** What is granted anew in every period. */
export interface Renewal extends Omit<GrantTerms, 'effectiveAt' | 'expiresAt' | 'expiresIn'> {
  /** Names it, if a key has several at a time. @defaultValue 'renewal' */
  readonly plan?: string
  readonly amount: Amount
  /** It lapses when the period ends, but for what rolls over. */
  readonly per: Exclude<Period, 'lifetime'>
  /** @defaultValue 'UTC' */
  readonly timeZone?: string
  /** @defaultValue the key */
  readonly scope?: string
  readonly note?: OperationOptions['note']
}

export const creditsOptions: KnownOptions<CreditsOptions<AmountKind, string>> = {
  name: 'checked',
  overdraft: 'checked',
  prices: 'object',
  amounts: amounts,
  overrun: overrun,
  late: late,
}

const rollover: KnownOptions<Rollover> = {
  limit: 'checked',
  for: 'checked',
}

const grantTerms: KnownOptions<GrantTerms> = {
  priority: 'checked',
  effectiveAt: 'checked',
  expiresAt: 'checked',
  expiresIn: 'checked',
  rollover: rollover,
  onlyFor: 'checked',
}

export const grantOptions: KnownOptions<GrantOptions> = {
  ...operationOptions,
  ...grantTerms,
}

export const grantLineOptions: KnownOptions<GrantLineOptions> = {
  ...grantTerms,
  scope: 'checked',
}

export const chargeOptions: KnownOptions<ChargeOptions> = {
  operationId: 'checked',
  scope: 'checked',
  note: 'object',
  wait: 'checked',
  signal: 'signal',
  quantity: 'checked',
}

export const renewal: KnownOptions<Renewal> = {
  plan: 'checked',
  amount: 'checked',
  per: 'checked',
  timeZone: 'checked',
  scope: 'checked',
  note: 'object',
  priority: 'checked',
  rollover: rollover,
  onlyFor: 'checked',
}

export const balanceOptions: KnownOptions<CreditBalanceOptions> = {
  scope: 'checked',
  feature: 'checked',
}

export const grantsOptions: KnownOptions<GrantsOptions> = {
  scope: 'checked',
  ended: 'boolean',
}
