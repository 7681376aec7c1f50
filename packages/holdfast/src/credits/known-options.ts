import type { KnownOptions } from '../core/known-options.ts'
import { amounts, late, operationOptions, overrun } from '../ledger/known-options.ts'
import type { AmountKind } from '../ledger/book.ts'
import type { GrantOptions, GrantTerms, Rollover } from './grant-terms.ts'
import type {
  ChargeOptions,
  CreditBalanceOptions,
  CreditsOptions,
  GrantLineOptions,
  GrantsOptions,
  Renewal,
} from './index.ts'

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
