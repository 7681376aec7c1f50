import { holdfastError } from '../core/errors.ts'
import { isStorable, mostNameBytes } from '../core/storable.ts'

/** What a line does; the numbers are those of `movement_kind` in `sql/internal`. */
export const kinds = {
  credit: 1,
  debit: 2,
  hold: 3,
  settle: 4,
  release: 5,
  extend: 6,
  refund: 7,
  grant: 8,
  void: 10,
  adjust: 11,
  opening: 12,
  return: 13,
  limit: 14,
  'transfer-out': 15,
  'transfer-in': 16,
} as const

export type Kind = (typeof kinds)[keyof typeof kinds]

/** Bits of a line's flags; the same as in `sql/app/apply.sql`. */
export const flags = {
  /** Book it whatever the balance. */
  unchecked: 1,
  /** Open the account as one that is never below zero. */
  walled: 2,
  /** A refusal ends when enough of a rolling window has expired. */
  rolling: 4,
  overrun: { book: 0, refuse: 8, cap: 16, available: 24 },
  late: { book: 0, refuse: 32, ignore: 64 },
  /** Remember a refusal for the line's ttl. */
  sticky: 128,
  /** Refuse what would not be exact as a JavaScript number, before it is applied. */
  numbers: 256,
  /** The caller named no scope, so that it may have been forgotten. */
  unscoped: 512,
  /** Take less, down to one, if there is not as much. */
  upTo: 1024,
} as const

/** One account's share of an operation, as the database takes it. */
export interface Line {
  readonly kind: Kind
  readonly book: string
  /** Absent where a hold's id says which account it is. */
  readonly key?: string | undefined
  readonly scope?: string | undefined
  readonly amount?: string | undefined
  /** The limit, overdraft or backorder that this line brings along. */
  readonly allowance?: string | undefined
  readonly flags?: number | undefined
  readonly note?: string | undefined
  readonly unit?: string | undefined
  readonly zone?: string | undefined
  /** Of a rate limit: microseconds in which one unit comes back. */
  readonly everyUs?: string | undefined
  readonly ttlMs?: number | undefined
  /** The hold that is settled, released or extended, or the operation that is refunded. */
  readonly ref?: string | undefined
  /** What an earlier version may have remembered that operation as. */
  readonly earlierRef?: string | undefined
  readonly terms?: string | undefined
}

/** Lines that are applied together or not at all, under one id. */
export interface Operation {
  readonly operationId?: string | undefined
  /** Operation ids are unique within a scope and a book. */
  readonly scope?: string | undefined
  readonly book: string
  readonly lines: readonly Line[]
  /** Longest wait, from the call, for an operation of its own. @defaultValue that of the ledger */
  readonly waitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** What names an account: `1`, `1n` and `'1'` are the same key. */
export type Key = string | number | bigint

/** An amount in whole units: cents, tokens, pieces. */
export type Amount = number | bigint

export function isKey(value: unknown): value is Key {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
}

/** What a name is for; the error names it. */
type NameField =
  | 'key'
  | 'scope'
  | 'name'
  | 'book'
  | 'operationId'
  | 'externalId'
  | 'of'
  | 'grant'
  | 'plan'
  | 'sku'
  | 'location'
  | 'follower'
  | 'feature'

/** A key, scope, book or operation id as text that is stored exactly as given. */
export function nameText(value: unknown, what: NameField): string {
  const text =
    typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))
      ? String(value)
      : value
  const problem =
    typeof text !== 'string' || text.length === 0
      ? 'must be a text that is not empty, a safe integer or a bigint'
      : !isStorable(text)
        ? 'contains NUL or half a surrogate pair'
        : text.length > mostNameBytes || Buffer.byteLength(text) > mostNameBytes
          ? `is longer than ${mostNameBytes} bytes`
          : undefined
  if (problem === undefined) return text as string
  throw holdfastError('LEDGER_NAME_INVALID', {
    details: { field: what, subject: `${what} ${problem}` },
  })
}

/** Half of what a bigint column holds, so that no sum of counters can overflow. */
const largest = 2n ** 62n - 1n

/** An amount as text. Zero, negative, fractional, unsafe or too large amounts are refused. */
export function amountText(value: unknown, field = 'amount', least = 1n): string {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= Number(least)) {
    return String(value)
  }
  if (typeof value === 'bigint' && value >= least && value <= largest) return String(value)
  throw holdfastError('LEDGER_AMOUNT_INVALID', {
    details: {
      field,
      subject: `${field} must be a whole number from ${least} to 2^53-1, or a bigint below 2^62`,
    },
  })
}

/** An amount in either direction as text; zero is refused as well. */
export function signedAmountText(value: unknown, field = 'amount'): string {
  const negative = (typeof value === 'number' || typeof value === 'bigint') && value < 0
  return negative ? `-${amountText(-value, field)}` : amountText(value, field)
}
