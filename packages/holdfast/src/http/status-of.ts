import { type ErrorCode, type ErrorEntry, errorCodes } from '../core/error-codes.ts'

/** What a caller over HTTP is told of an error. */
export interface ErrorStatus {
  readonly status: number
  /** The same request may succeed soon: `Retry-After` says when. */
  readonly again: boolean
}

const locked: ErrorStatus = { status: 423, again: true }
const busy: ErrorStatus = { status: 503, again: true }
const conflict: ErrorStatus = { status: 409, again: false }
const broken: ErrorStatus = { status: 500, again: false }

/** Where a code means something else to a caller than its class does. */
const exceptions: Partial<Record<ErrorCode, ErrorStatus>> = {
  LOCK_TIMEOUT: locked,
  LOCK_BUSY: locked,
  ROWS_TIMEOUT: locked,
  ROWS_BUSY: locked,
  LEASE_TIMEOUT: locked,
  // As a duplicate gets it from `idempotentExpress` and the others.
  ONCE_TIMEOUT: { status: 409, again: true },
  // The same request would overwrite what the caller has not seen.
  ROWS_VERSION_CONFLICT: conflict,
  // This process is going away; another one is there.
  HOLDFAST_CLOSED: busy,
  // Refused to whoever runs the database, not to who sent a request.
  LEDGER_MOVEMENTS_GONE: broken,
  SHARD_BUCKET_LOST: broken,
  SHARD_INIT_REFUSED: broken,
  SHARD_MOVE_INCOMPLETE: broken,
  SHARD_MOVE_OVERTAKEN: broken,
  SHARD_MOVE_REFUSED: broken,
}

/** The one place that decides which code is which status. */
export function statusOf(code: ErrorCode): ErrorStatus {
  // An error of a later version in the same process has a code that is not in this table.
  const entry = errorCodes[code] as ErrorEntry | undefined
  if (entry === undefined) return broken
  return exceptions[code] ?? ofClass(entry)
}

function ofClass({ class: name, retryable }: ErrorEntry): ErrorStatus {
  switch (name) {
    case 'ContentionError':
      return busy
    case 'RefusedError':
      return retryable ? busy : conflict
    case 'LostError':
      return conflict
    case 'DriverError':
      return retryable ? busy : broken
    // A mistake in the program, a schema that does not fit, or an outcome that nobody knows: a status that
    // says "try again" would have it done twice.
    case 'UsageError':
    case 'SchemaError':
    case 'UnknownOutcomeError':
      return broken
  }
}
