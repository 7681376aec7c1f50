import type { KnownOptions } from '../core/options/known-options.ts'
import { type AmountKind, amounts } from '../ledger/book.ts'
import type {
  AdjustOptions,
  HistoryPage,
  HoldPart,
  PlaceOptions,
  ReserveOptions,
  ReturnOptions,
  StockOperationOptions,
  StockOptions,
  StockWords,
  TransferOptions,
  WholeLines,
} from './stock.ts'

const overrun: readonly NonNullable<StockOptions<AmountKind>['overrun']>[] = [
  'refuse',
  'cap',
  'available',
]

const late: readonly NonNullable<StockOptions<AmountKind>['late']>[] = ['book', 'refuse']

export const stockOptions: KnownOptions<StockOptions<AmountKind, string>> = {
  name: 'checked',
  locations: 'texts',
  scope: 'checked',
  backorder: 'checked',
  stickyFor: 'checked',
  overrun: overrun,
  late: late,
  amounts: amounts,
}

const reference: KnownOptions<NonNullable<StockWords['reference']>> = {
  type: 'string',
  id: 'string',
}

const stockWords: KnownOptions<StockWords> = {
  source: 'string',
  reference: reference,
  actor: 'string',
  reason: 'string',
  note: 'object',
}

export const stockOperationOptions: KnownOptions<StockOperationOptions> = {
  ...stockWords,
  externalId: 'checked',
  scope: 'checked',
  acrossScopes: 'boolean',
}

export const returnOptions: KnownOptions<ReturnOptions> = {
  ...stockOperationOptions,
  of: 'checked',
}

export const adjustOptions: KnownOptions<AdjustOptions> = {
  ...stockOperationOptions,
}

export const reserveOptions: KnownOptions<ReserveOptions> = {
  ...stockOperationOptions,
  ttl: 'checked',
}

export const transferOptions: KnownOptions<TransferOptions> = {
  ...stockOperationOptions,
  from: 'checked',
  to: 'checked',
}

export const wholeLines: KnownOptions<WholeLines> = {
  lines: 'checked',
  scope: 'checked',
}

export const holdPart: KnownOptions<HoldPart & StockWords> = {
  ...wholeLines,
  ...stockWords,
}

export const placeOptions: KnownOptions<PlaceOptions> = {
  location: 'checked',
  scope: 'checked',
}

export const levelsOptions: KnownOptions<Pick<PlaceOptions, 'scope'>> = {
  scope: 'checked',
}

export const historyOptions: KnownOptions<PlaceOptions & HistoryPage> = {
  ...placeOptions,
  before: 'checked',
  limit: 'checked',
}
