import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { isName, isStorable, mostNameBytes } from '../core/storable.ts'
import { resolveMs, type ResolveOptions, resolveOptions } from '../tx/ask-again.ts'
import type { TableName } from '../core/table-name.ts'
import type {
  ColumnValue,
  FinishLayout,
  LeaseSettings,
  PerKey,
  PriorityColumn,
  TakeLayout,
} from './engine.ts'
import { assertTexts, objectGiven } from '../core/options/given.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** Who has turns, and how many rows of one key may be in flight at a time. */
export interface PerKeyOptions {
  /** NOT NULL; a tenant, a customer, a host. */
  readonly column: string
  /**
   * Most rows of one key that are claimed at the same moment, over all processes. Without it, keys
   * only take turns.
   */
  readonly limit?: number
  /**
   * Most rows of one key that are claimed in any span of time, over all processes: `{ most: 10, per: '1 min' }`.
   * A row that is tried again counts again. Needs the schema of Holdfast, see `holdfast migrate`.
   */
  readonly rate?: RateOptions
}

/** So many in any span of time. */
export interface RateOptions {
  /** From 1 to 1,000. */
  readonly most: number
  readonly per: Duration
  /** Where Holdfast's tables are. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** What both modes know about a table. */
interface TableOptions {
  /** Its name, found by search_path, or `{ schema, table }`. */
  readonly table: string | TableName
  /** The columns that identify a row. @defaultValue 'id' */
  readonly key?: string | readonly string[]
  /** Oldest first by these columns. @defaultValue `columns.runAt` if there is one, then the key */
  readonly orderBy?: readonly string[]
  /** Only rows that have these values. */
  readonly where?: Readonly<Record<string, ColumnValue>>
  /**
   * With several primaries: the column that has the bucket of the row's scope, one of `key`. Then rows may
   * move with their bucket, and claims follow them. Without it rows stay where they are.
   */
  readonly bucket?: string
  /** Columns that are returned. Name them where the client cannot read all. @defaultValue all */
  readonly select?: readonly string[]
}

/** Names of the columns that a claim writes and reads. */
export interface ClaimColumns {
  /** @defaultValue 'status' */
  readonly status?: string
  /** A uuid or a text: which claim the row belongs to. @defaultValue 'claim_token' */
  readonly token?: string
  /** A timestamptz. @defaultValue 'lease_until' */
  readonly leaseUntil?: string
  /** A whole number; without it nothing is ever dead. */
  readonly attempts?: string
  /** A timestamptz: not before; `fail` writes it. Without it a failed row can be claimed at once. */
  readonly runAt?: string
  /** Comes first in the order; has few different values. */
  readonly priority?: string | PriorityColumn
  /** A text: why it failed last. */
  readonly error?: string
  /** A text: which process has it. */
  readonly holder?: string
  /** A timestamptz: when it was completed. */
  readonly finishedAt?: string
}

/** What the status column contains. */
export interface ClaimValues {
  /** @defaultValue 'pending' */
  readonly pending?: ColumnValue
  /** @defaultValue 'claimed' */
  readonly claimed?: Exclude<ColumnValue, null>
  /** @defaultValue 'done' */
  readonly done?: Exclude<ColumnValue, null>
  /** @defaultValue 'dead' */
  readonly dead?: Exclude<ColumnValue, null>
}

/** How failed rows wait. */
export interface BackoffOptions {
  /** After the first failure; doubles from there. @defaultValue '1 s' */
  readonly first?: Duration
  /** @defaultValue '10 min' */
  readonly most?: Duration
}

/** A table whose rows are claimed with a lease. */
export interface ClaimsOptions extends TableOptions, ResolveOptions {
  readonly mode?: 'lease'
  readonly columns?: ClaimColumns
  readonly values?: ClaimValues
  /** How long a claim lasts without a heartbeat. @defaultValue '30 s' */
  readonly lease?: Duration
  /** Attempts until a row is dead: a number, or a column. @defaultValue 5 */
  readonly maxAttempts?: number | { readonly column: string }
  readonly backoff?: BackoffOptions
  /** Delete rows that are done instead of writing the status. @defaultValue false */
  readonly deleteDone?: boolean
  readonly perKey?: PerKeyOptions
  /** Written into `columns.holder`. @defaultValue host name and process id */
  readonly holder?: string
}

/** A table whose rows are claimed, worked on and finished in one transaction of the caller's. */
export interface TransactionClaimsOptions extends TableOptions {
  readonly mode: 'transaction'
  readonly columns?: Pick<ClaimColumns, 'status' | 'runAt' | 'priority' | 'finishedAt'>
  readonly values?: Pick<ClaimValues, 'pending' | 'done'>
  /** Delete rows that are done instead of writing the status. @defaultValue false */
  readonly deleteDone?: boolean
  /** Keys take turns. */
  readonly perKey?: Pick<PerKeyOptions, 'column'>
}

const inTransaction: readonly string[] = ['transaction']

const byLease: readonly string[] = ['lease']

const rateOptions: KnownOptions<RateOptions> = {
  most: 'checked',
  per: 'checked',
  schema: 'text',
}

const perKeyOptions: KnownOptions<PerKeyOptions> = {
  column: 'checked',
  limit: 'checked',
  rate: rateOptions,
}

export const backoffOptions: KnownOptions<BackoffOptions> = {
  first: 'checked',
  most: 'checked',
}

const takeColumns: KnownOptions<NonNullable<TransactionClaimsOptions['columns']>> = {
  status: 'checked',
  runAt: 'checked',
  priority: 'checked',
  finishedAt: 'checked',
}

const claimColumns: KnownOptions<ClaimColumns> = {
  ...takeColumns,
  token: 'checked',
  leaseUntil: 'checked',
  attempts: 'checked',
  error: 'checked',
  holder: 'checked',
}

const takeValues: KnownOptions<NonNullable<TransactionClaimsOptions['values']>> = {
  pending: 'checked',
  done: 'checked',
}

const claimValues: KnownOptions<ClaimValues> = {
  ...takeValues,
  claimed: 'checked',
  dead: 'checked',
}

const takePerKey: KnownOptions<NonNullable<TransactionClaimsOptions['perKey']>> = {
  column: 'checked',
}

const tableOptions: KnownOptions<
  Omit<TransactionClaimsOptions, 'columns' | 'values' | 'perKey' | 'mode'>
> = {
  table: 'checked',
  key: 'checked',
  orderBy: 'checked',
  where: 'checked',
  bucket: 'checked',
  select: 'checked',
  deleteDone: 'boolean',
}

export const transactionClaimsOptions: KnownOptions<TransactionClaimsOptions> = {
  ...tableOptions,
  mode: inTransaction,
  columns: takeColumns,
  values: takeValues,
  perKey: takePerKey,
}

export const claimsOptions: KnownOptions<ClaimsOptions> = {
  ...tableOptions,
  ...resolveOptions,
  mode: byLease,
  columns: claimColumns,
  values: claimValues,
  lease: 'checked',
  maxAttempts: 'checked',
  backoff: backoffOptions,
  perKey: perKeyOptions,
  holder: 'text',
}

export function leaseSettings(
  options: ClaimsOptions,
  texts: readonly string[] | undefined,
): LeaseSettings {
  const { maxAttempts = 5 } = options
  const columns = objectGiven(options.columns, 'columns')
  const values = objectGiven(options.values, 'values')
  const backoff = objectGiven(options.backoff, 'backoff')
  const perKey = perKeyOf(options)
  if (typeof maxAttempts !== 'object' || maxAttempts === null) positive(maxAttempts, 'maxAttempts')
  else text(maxAttempts.column, 'maxAttempts.column')
  if (perKey?.limit !== undefined) positive(perKey.limit, 'perKey.limit')
  const layout: FinishLayout = {
    ...tableLayout(options, columns),
    status: columns.status ?? 'status',
    pending: literal(values.pending === undefined ? 'pending' : values.pending, 'values.pending'),
    claimed: literal(values.claimed ?? 'claimed', 'values.claimed'),
    done: options.deleteDone === true ? undefined : literal(values.done ?? 'done', 'values.done'),
    dead:
      columns.attempts === undefined ? undefined : literal(values.dead ?? 'dead', 'values.dead'),
    token: columns.token ?? 'claim_token',
    leaseUntil: columns.leaseUntil ?? 'lease_until',
    attempts: columns.attempts,
    maxAttempts,
    error: columns.error,
    holder: columns.holder,
    finishedAt: columns.finishedAt,
    ...(texts === undefined ? {} : { texts }),
  }
  distinct([layout.pending, layout.claimed, layout.done, layout.dead])
  return {
    layout,
    leaseMs: durationMs(options.lease ?? '30 s', 'lease'),
    forMs: resolveMs(options),
    backoff: {
      firstMs: durationMs(backoff.first ?? '1 s', 'backoff.first'),
      mostMs: durationMs(backoff.most ?? '10 min', 'backoff.most'),
    },
    perKey: perKey && { column: perKey.column, limit: perKey.limit, rate: rateOf(layout, perKey) },
    bucket: options.bucket,
  }
}

const mostPerTime = 1_000

/** Named by what it is a limit of: two queues of one table do not share theirs. */
function rateOf({ table, where }: FinishLayout, { column, rate }: PerKeyOptions): PerKey['rate'] {
  if (rate === undefined) return undefined
  const { most, per, schema = 'holdfast' } = objectGiven(rate, 'perKey.rate')
  positive(most, 'rate.most')
  if (most > mostPerTime) throw invalid('rate.most', `must be ${mostPerTime} at most`)
  const perMs = Math.ceil(durationMs(per, 'rate.per'))
  // Names are kept in a table, so they stay as they were: with the value in quotes, as SQL has it.
  const fixed = where.map(([of, value]) =>
    value === null ? `${of}=` : `${of}='${String(value).replaceAll("'", "''")}'`,
  )
  // Encoded, so that no part runs into the next, and no setting of the server reads it differently.
  const name = [table.schema ?? '', table.table, ...fixed, column].map(encodeURIComponent).join('/')
  return { schema, name, most, perMs }
}

export function takeLayout(options: TransactionClaimsOptions): TakeLayout {
  const columns = objectGiven(options.columns, 'columns')
  const values = objectGiven(options.values, 'values')
  perKeyOf(options)
  const layout: TakeLayout = {
    ...tableLayout(options, columns),
    status: columns.status ?? 'status',
    pending: literal(values.pending === undefined ? 'pending' : values.pending, 'values.pending'),
    done: options.deleteDone === true ? undefined : literal(values.done ?? 'done', 'values.done'),
    finishedAt: columns.finishedAt,
  }
  distinct([layout.pending, layout.done])
  return layout
}

function tableLayout(
  { table, key = 'id', orderBy, where, select, bucket }: TableOptions,
  { priority, ...named }: ClaimColumns,
): Pick<TakeLayout, 'table' | 'key' | 'where' | 'runAt' | 'priority' | 'order' | 'columns'> {
  const { runAt } = named
  const keys = typeof key === 'string' ? [key] : key
  assertTexts(keys, 'key')
  for (const column of keys) text(column, 'key')
  assertTexts(orderBy, 'orderBy')
  assertTexts(select, 'select')
  for (const [name, column] of Object.entries(named)) {
    if (column !== undefined) text(column, `columns.${name}`)
  }
  const first =
    typeof priority === 'string' ? priority : objectGiven(priority, 'columns.priority').column
  if (priority !== undefined) text(first, 'columns.priority')
  text(typeof table === 'string' ? table : objectGiven(table, 'table').table, 'table')
  if (keys.length === 0) throw invalid('key', 'names no column')
  if (bucket !== undefined && !keys.includes(bucket)) throw invalid('bucket', 'is not part of key')
  if (typeof table === 'string' && table.includes('.')) {
    throw invalid('table', 'has a dot in its name; use { schema, table }')
  }
  return {
    table: typeof table === 'string' ? { table } : table,
    key: keys,
    where: Object.entries(objectGiven(where, 'where')).map(([column, value]) => [
      column,
      literal(value, 'where'),
    ]),
    runAt,
    priority: typeof priority === 'string' ? { column: priority, first: 'smallest' } : priority,
    order: orderBy ?? [...(runAt === undefined ? [] : [runAt]), ...keys],
    columns: select,
  }
}

/** It becomes a part of the statement, so that it can be found in the predicate of an index. */
function literal(value: ColumnValue, option: string): ColumnValue {
  if (value === null) return null
  if (!['string', 'number', 'boolean'].includes(typeof value))
    throw invalid(option, 'must be a text, a number, true, false or null')
  const text = String(value)
  // A backslash means something else where standard_conforming_strings is off.
  if (!isStorable(text) || text.includes('\\')) {
    throw invalid(option, 'contains NUL or a backslash')
  }
  return value
}

function distinct(values: readonly (ColumnValue | undefined)[]): void {
  // A number and its text are one value.
  const known = values
    .filter((value) => value !== undefined)
    .map((value) => (value === null ? null : String(value)))
  if (new Set(known).size < known.length) throw invalid('values', 'has two states of one value')
}

function perKeyOf<P extends Pick<PerKeyOptions, 'column'>>(options: {
  readonly perKey?: P
}): P | undefined {
  if (options.perKey === undefined) return undefined
  text(objectGiven(options.perKey, 'perKey').column, 'perKey.column')
  return options.perKey
}

/** @throws OPTION_INVALID */
export function text(value: unknown, option: string, mostBytes: number = mostNameBytes): void {
  if (isName(value, mostBytes)) return
  throw invalid(option, `must be a text of 1 to ${mostBytes} bytes without NUL`)
}

/** What an integer of the server holds. */
export const mostInteger: number = 2 ** 31 - 1

export function positive(value: number, option: string): void {
  if (!Number.isSafeInteger(value) || value < 1 || value > mostInteger) {
    throw invalid(option, `must be a whole number from 1 to ${mostInteger}`)
  }
}

export function invalid(option: string, why: string, cause?: unknown): Error {
  const details = { option, subject: `${option} ${why}` }
  return holdfastError('OPTION_INVALID', { details, cause })
}

/** Whether rows in flight, or claimed lately, keep others of the same key from being claimed. */
export function isLimited(perKey: PerKey | undefined): boolean {
  return (perKey?.limit ?? perKey?.rate) !== undefined
}
