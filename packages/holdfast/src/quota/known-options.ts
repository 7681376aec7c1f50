import type { KnownOptions } from '../core/known-options.ts'
import {
  amounts,
  holdOptions as anyHoldOptions,
  late,
  overrun,
  takeOptions,
} from '../ledger/known-options.ts'
import type { AmountKind } from '../ledger/book.ts'
import type { DenyCacheOptions } from './deny-cache.ts'
import type { ConsumeOptions, HoldOptions, QuotaOptions } from './index.ts'
import type { PeekOptions } from './quota-upkeep.ts'

const denyCacheOptions: KnownOptions<DenyCacheOptions> = {
  forMs: 'checked',
  size: 'checked',
}

export const quotaOptions: KnownOptions<QuotaOptions<AmountKind>> = {
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

export const consumeOptions: KnownOptions<ConsumeOptions> = {
  ...takeOptions,
  freshId: 'boolean',
}

export const holdOptions: KnownOptions<HoldOptions> = {
  ...anyHoldOptions,
  freshId: 'boolean',
}

export const peekOptions: KnownOptions<PeekOptions> = {
  cost: 'checked',
  scope: 'checked',
}
