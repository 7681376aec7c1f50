import type { KnownOptions } from '../core/known-options.ts'
import { resolveOptions } from '../tx/known-options.ts'
import type { AdjustOptions } from './adjusting.ts'
import type { AuditOptions } from './audit.ts'
import type { AmountKind, LineOptions, OperationOptions, TakeOptions } from './book.ts'
import type { FollowerOptions, FollowOptions } from './follow.ts'
import type { HoldPolicy, WithHoldOptions } from './holds.ts'
import type { ApplyOptions, Ledger } from './index.ts'
import type { LedgerOptions } from './kernel.ts'
import type { MaintainOptions } from './maintain.ts'
import type { OpeningOptions } from './opening.ts'
import type { HistoryOptions, HoldsOptions, ReadOptions } from './reading.ts'
import type { KeysOptions, UsageOptions } from './reports.ts'
import type { SweeperOptions, SweepOptions } from './sweeper.ts'

export const amounts: readonly AmountKind[] = ['number', 'bigint']

export const overrun: readonly NonNullable<HoldPolicy['overrun']>[] = [
  'book',
  'refuse',
  'cap',
  'available',
]

export const late: readonly NonNullable<HoldPolicy['late']>[] = ['book', 'refuse', 'ignore']

export const ledgerOptions: KnownOptions<LedgerOptions> = {
  ...resolveOptions,
  schema: 'text',
  lanes: 'checked',
  batch: 'checked',
  coalesce: 'boolean',
  wait: 'checked',
  queue: 'checked',
}

export const operationOptions: KnownOptions<OperationOptions> = {
  operationId: 'checked',
  scope: 'checked',
  note: 'object',
  feature: 'checked',
  wait: 'checked',
  signal: 'signal',
}

export const takeOptions: KnownOptions<TakeOptions> = {
  ...operationOptions,
  upTo: 'boolean',
}

export const lineOptions: KnownOptions<LineOptions> = {
  scope: 'checked',
  ttl: 'checked',
  of: 'checked',
}

export const holdOptions: KnownOptions<OperationOptions & { readonly ttl: unknown }> = {
  ...operationOptions,
  ttl: 'checked',
}

export const withHoldOptions: KnownOptions<WithHoldOptions> = {
  ...holdOptions,
  estimate: 'checked',
}

export const refundOptions: KnownOptions<OperationOptions & { readonly of: unknown }> = {
  ...operationOptions,
  of: 'checked',
}

export const adjustOptions: KnownOptions<AdjustOptions> = {
  ...operationOptions,
  reason: 'checked',
}

export const applyOptions: KnownOptions<ApplyOptions> = {
  ...operationOptions,
  acrossScopes: 'boolean',
  amounts: amounts,
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

export const keysOptions: KnownOptions<KeysOptions<AmountKind>> = {
  after: 'checked',
  limit: 'checked',
  amounts: amounts,
}

export const usageOptions: KnownOptions<UsageOptions<AmountKind>> = {
  from: 'checked',
  to: 'checked',
  per: 'checked',
  timeZone: 'checked',
  by: 'checked',
  key: 'checked',
  scope: 'checked',
  amounts: amounts,
}

export const auditOptions: KnownOptions<AuditOptions> = {
  onProgress: 'function',
  signal: 'signal',
  list: 'checked',
}

export const maintainOptions: KnownOptions<MaintainOptions> = {
  monthsAhead: 'checked',
  keepMonths: 'checked',
  operationHorizon: 'checked',
  wait: 'checked',
  onProgress: 'function',
}

export const openingOptions: KnownOptions<OpeningOptions> = {
  operationId: 'checked',
  batch: 'checked',
  onProgress: 'function',
}

export const openOptions: KnownOptions<Parameters<Ledger<never>['open']>[2]> = {
  ...openingOptions,
  walled: 'boolean',
}

export const redeclareOptions: KnownOptions<
  NonNullable<Parameters<Ledger<never>['redeclare']>[2]>
> = {
  dryRun: 'boolean',
}

export const followOptions: KnownOptions<FollowOptions<AmountKind>> = {
  name: 'checked',
  book: 'checked',
  from: 'checked',
  batch: 'checked',
  amounts: amounts,
}

export const followerOptions: KnownOptions<FollowerOptions<AmountKind>> = {
  ...followOptions,
  every: 'checked',
  thorough: 'checked',
}

export const sweepOptions: KnownOptions<SweepOptions> = {
  limit: 'checked',
}

export const sweeperOptions: KnownOptions<SweeperOptions> = {
  ...sweepOptions,
  every: 'checked',
}
