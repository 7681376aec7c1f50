import type { ErrorCode } from '../error-codes.ts'
import type { LockOrderEvent } from '../events/event-map.ts'
import type { PoolUse } from './pool-use.ts'
import type { Refused } from './refused.ts'

/** What ended a wait: the call's own limit, a setting of the transaction, or the client's own timer. */
export type EndedBy = 'wait' | 'lock_timeout' | 'statement_timeout' | 'client'

/** One thing about a table that is not as claims need it. */
export interface ClaimFinding {
  readonly code:
    | 'table-missing'
    | 'table-type'
    | 'column-missing'
    | 'column-nullable'
    | 'column-type'
    | 'column-unfit'
    | 'column-name'
    | 'key-type'
    | 'key-not-unique'
    | 'index-missing'
    | 'privilege-missing'
  /** What it is about: `table outbox`, `column outbox.claim_token`. */
  readonly object: string
  readonly what: string
  /** SQL to run, or a sentence where there is none. */
  readonly fix: string
}

/** Every field that `details` of an error may have. */
interface DetailTypes {
  readonly ahead: number
  readonly allowed: readonly string[]
  readonly attempts: number
  readonly book: string
  readonly client: string
  readonly cycle: LockOrderEvent['cycle']
  readonly didYouMean: string
  readonly differs: readonly {
    readonly option: string
    readonly kept: string | undefined
    readonly here: string | undefined
  }[]
  readonly ended: 'refused' | 'committed' | 'rolled back' | 'unknown'
  readonly endedBy: EndedBy
  readonly failures: readonly { readonly primary: string; readonly error: unknown }[]
  readonly fault: LockOrderEvent['fault']
  readonly field: string
  readonly file: string
  readonly files: readonly string[]
  readonly findings: readonly ClaimFinding[]
  readonly foundVersion: string
  readonly given: string
  /** Most clients do not say who else has connections. */
  readonly held: Pick<PoolUse, 'transactions'> & Partial<PoolUse>
  readonly lost: readonly (readonly string[])[]
  readonly missing: number
  readonly names: readonly string[]
  readonly next: string
  readonly option: string
  readonly part: number
  readonly pid: number
  readonly primary: string
  readonly reason: string
  readonly retryInMs: number
  readonly right: string
  readonly role: string
  readonly schedule: string
  readonly schema: string
  readonly skipped: number
  readonly sqlState: string
  readonly subject: string
  readonly use: string
  readonly verdict: Refused<number | bigint>
  readonly waiting: number
}

type DetailName = keyof DetailTypes

/** What each field tells. */
export const detailMeanings: Readonly<Record<DetailName, string>> = {
  ahead: 'guards of this process that wait for the same key and come first',
  allowed: 'the options that there are',
  attempts: 'how often it was tried',
  book: 'the book of the ledger',
  client: 'the client library of the driver',
  cycle:
    'the orders of locks that exclude each other, each as `{ before, after, together, at }`, `at` being the place in the code',
  didYouMean: 'the option that may have been meant',
  differs:
    'what of the declaration is another one in the database, each as `{ option, kept, here }`',
  ended: 'how the transaction ended: refused, committed, rolled back or unknown',
  endedBy: 'which limit ended the wait: `wait`, `lock_timeout`, `statement_timeout` or `client`',
  failures: 'the primaries that could not be asked, and why, each as `{ primary, error }`',
  fault: 'out-of-order, upgrade or rows-first',
  field: 'what cannot be stored',
  file: 'the file that could not be applied',
  files: 'the files that it is about',
  findings: 'what the table lacks, and what to change, each as `{ code, object, what, fix }`',
  foundVersion: 'the version that the row has',
  given: 'what was passed instead',
  held: 'who has the connections of the pool: `transactions` of Holdfast; on pg also `size`, `statements`, `sessions`, `others`, `waiting`, `oldestMs`',
  lost: 'the keys of the claims that were lost',
  missing: 'how many rows are not there',
  names: 'the whole names of the locks',
  next: 'where a list goes on without them',
  option: 'the option that is wrong',
  part: 'which of the parts, from 0',
  pid: 'the process id of the session',
  primary: 'the name of the primary',
  reason: 'why, as a word to branch on',
  retryInMs: 'milliseconds until a call is tried again',
  right: 'the right that is missing',
  role: 'the role that lacks it',
  schedule: 'the name of the schedule',
  schema: 'the schema that it is about',
  skipped: 'how many rows were skipped',
  sqlState: 'the SQLSTATE of PostgreSQL',
  subject: 'what it is about, in words; part of the message unless it is a name of yours',
  use: 'what fits instead',
  verdict: 'the refusal of the ledger, a `Refused`: `reason`, `retryAt`, the balances, …',
  waiting: 'operations that wait in this process',
}

const fieldsOf = {
  CIRCUIT_OPEN: ['retryInMs'],
  CLAIM_LOST: ['lost?'],
  CLAIM_OUTSIDE_TRANSACTION: [],
  CLAIM_STALE_SNAPSHOT: [],
  CLAIM_STOPPED: [],
  CLAIM_TABLE_UNFIT: ['subject', 'findings'],
  COMMIT_UNKNOWN: ['subject?', 'reason?'],
  CONNECTION_LOST: [],
  CONNECTION_UNAVAILABLE: ['subject?'],
  DRIVER_HANDLE_INVALID: ['subject?', 'given?', 'use?', 'client?', 'names?'],
  ENGINE_LOCKS_ARE_STUBS: ['client', 'subject?', 'names?'],
  ENGINE_ONE_SESSION: ['client', 'subject?', 'names?'],
  ENGINE_MISMATCH: ['subject', 'use'],
  ENGINE_NOT_OFFERED: ['subject'],
  ENGINE_SEVERAL_PRIMARIES: ['subject'],
  ENGINE_TABLE_UNFIT: ['subject'],
  ENGINE_FILE_UNFIT: ['subject'],
  ENGINE_VERSION: ['subject'],
  HOLDFAST_CLOSED: ['subject'],
  HOLDFAST_CLOSING: ['subject'],
  LEASE_LOST: ['subject', 'reason'],
  LEASE_NAME_INVALID: ['field', 'subject'],
  LEASE_OUTSIDE_TRANSACTION: [],
  LEASE_SESSION_POOLED: [],
  LEASE_TERM_LEFT: ['subject'],
  LEASE_TIMEOUT: ['subject'],
  LEDGER_AMOUNT_INVALID: ['field', 'subject'],
  LEDGER_AMOUNT_UNSAFE: [],
  LEDGER_ANSWER_UNREADABLE: [],
  LEDGER_BOOK_DIFFERS: ['subject', 'book', 'differs'],
  LEDGER_HOLD_EXPIRING: [],
  LEDGER_HOLD_REFUSED: ['subject', 'verdict'],
  LEDGER_MOVEMENTS_GONE: [],
  LEDGER_NAME_INVALID: ['field', 'subject'],
  LEDGER_OUTCOME_UNKNOWN: [],
  LEDGER_OUTSIDE_TRANSACTION: [],
  LEDGER_OVERLOADED: ['waiting'],
  LEDGER_SCOPES: [],
  LEDGER_SCOPE_FORGOTTEN: [],
  LEDGER_TIMEOUT: ['subject'],
  LOCK_BUSY: ['subject', 'names', 'ahead?'],
  LOCK_KEY_INVALID: ['subject'],
  LOCK_NAMESPACE_DUPLICATE: ['subject'],
  LOCK_NOT_HELD: ['subject', 'names'],
  LOCK_ON_STANDBY: ['client', 'subject?', 'names?'],
  LOCK_ORDER: ['subject', 'fault', 'cycle', 'names', 'pid?'],
  LOCK_OUTSIDE_TRANSACTION: ['client', 'subject?', 'names?'],
  LOCK_STALE_SNAPSHOT: ['client', 'subject?', 'names?'],
  LOCK_TIMEOUT: ['subject', 'names', 'endedBy?', 'ahead?'],
  OBSERVE_NO_SUCH_SCHEDULE: ['schedule'],
  OBSERVE_NOT_SHOWN: ['subject'],
  OBSERVE_NO_SUCH_SESSION: ['subject', 'pid'],
  OBSERVE_RECORDING: [],
  OBSERVE_RIGHT_MISSING: ['subject', 'pid', 'right', 'role'],
  OBSERVE_TIMEOUT: [],
  OBSERVE_TRANSACTION_OVER: ['subject', 'pid'],
  ONCE_KEY_INVALID: ['field', 'subject'],
  ONCE_OUTSIDE_TRANSACTION: [],
  ONCE_RESULT_INVALID: [],
  ONCE_TIMEOUT: ['endedBy?'],
  OPTION_INVALID: ['option', 'subject', 'allowed?', 'didYouMean?'],
  POOL_STARVED: ['subject?', 'held?'],
  RATE_LIMIT_OUTSIDE_TRANSACTION: [],
  RATE_LIMIT_OVERLOADED: ['waiting', 'subject'],
  RATE_LIMIT_TIMEOUT: ['subject'],
  ROWS_BUSY: ['subject', 'endedBy?'],
  ROWS_CHANGE_SUPPRESSED: ['subject'],
  ROWS_KEY_INVALID: ['subject'],
  ROWS_MISSING: ['subject', 'missing', 'skipped'],
  ROWS_OUTSIDE_TRANSACTION: ['subject'],
  ROWS_TIMEOUT: ['subject', 'endedBy?'],
  ROWS_VERSION_CONFLICT: ['subject', 'reason', 'foundVersion?'],
  SCHEDULE_OUTSIDE_TRANSACTION: ['subject?'],
  SCHEDULE_STOPPED: ['subject'],
  SCHEDULE_TICK_LOST: ['subject', 'reason?'],
  SCHEDULE_TIMEOUT: ['subject'],
  SCHEDULE_TOO_EARLY: ['subject'],
  SCHEMA_CHECKSUM: ['subject', 'files'],
  SCHEMA_FAILED: ['subject', 'file', 'sqlState'],
  SCHEMA_FILES_MISSING: [],
  SCHEMA_MISSING: ['subject?'],
  SCHEMA_NEWER: ['subject', 'files'],
  SCHEMA_OCCUPIED: ['subject', 'schema'],
  SELF_TEST_INCONCLUSIVE: [],
  SHARD_BUCKET_LOST: [],
  SHARD_ELSEWHERE: [],
  SHARD_HOLD_INCOMPLETE: ['subject', 'part', 'verdict'],
  SHARD_INIT_REFUSED: ['subject'],
  SHARD_MAP_INVALID: ['subject'],
  SHARD_MAP_MISSING: ['subject?'],
  SHARD_MOVE_BLOCKED: [],
  SHARD_MOVE_INCOMPLETE: ['subject'],
  SHARD_MOVE_OVERTAKEN: ['subject'],
  SHARD_MOVE_REFUSED: ['subject'],
  SHARD_MOVE_STALLED: ['subject?'],
  SHARD_MOVE_UNKNOWN: [],
  SHARD_MOVING: [],
  SHARD_NO_ANSWER: [],
  SHARD_NO_KEY: [],
  SHARD_PRIMARY_FAILED: ['subject', 'failures', 'next?'],
  SHARD_PRIMARY_NEEDED: ['subject', 'failures'],
  SHARD_PRIMARY_UNKNOWN: ['primary', 'subject'],
  SHARD_SPLIT: [],
  SHARD_UNCONFIRMED: [],
  TX_CLIENT_TIMEOUT: [],
  TX_DEADLINE: ['subject?'],
  TX_DEADLOCK: ['attempts'],
  TX_ENDED_INSIDE: ['subject', 'ended'],
  TX_HANDLE_ENDED: ['subject?'],
  TX_NESTED: ['subject?', 'ended?'],
  TX_ROLLED_BACK: [],
  TX_ROOT_CLIENT: ['client'],
  TX_SERIALIZATION: ['attempts'],
  TX_SESSION_SHARED: ['client?', 'subject?', 'names?'],
  TX_UNAWAITED: [],
} as const

/** Which fields the details of an error have, by its code; `?` is behind those that may be missing. */
export const errorDetails: Readonly<Record<ErrorCode, readonly (DetailName | `${DetailName}?`)[]>> =
  fieldsOf

type Listed<C extends ErrorCode> = (typeof fieldsOf)[C][number]

/** The details of an error with this code. */
export type ErrorDetailsOf<C extends ErrorCode> = {
  readonly [N in Extract<Listed<C>, DetailName>]: DetailTypes[N]
} & {
  readonly [N in DetailName as `${N}?` extends Listed<C> ? N : never]?: DetailTypes[N]
}
