/** The part of the table about the ledger and its faces. */
export const ledgerCodes = {
  LEDGER_NAME_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'A key, scope, book or operation id cannot be stored exactly as it is.',
    next: 'Pass a text of 1 to 512 bytes without NUL, a safe integer or a bigint; details.field names it.',
  },
  LEDGER_AMOUNT_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'An amount is not a whole number in range.',
    next: 'Count in whole units (cents, tokens, pieces); pass a bigint beyond 2^53.',
  },
  LEDGER_AMOUNT_UNSAFE: {
    class: 'UsageError',
    retryable: false,
    what: 'An amount in the ledger is too large to be an exact JavaScript number.',
    next: "Declare the book with amounts: 'bigint'.",
  },
  LEDGER_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'An operation was to join a transaction, but the handle is not inside one.',
    next: 'Pass the transaction handle your client gave you, or no handle at all: then the operation is a transaction of its own.',
  },
  LEDGER_SCOPES: {
    class: 'UsageError',
    retryable: false,
    what: 'The lines of one operation belong to different scopes, which may one day be on different servers.',
    next: 'Give all lines one scope, or say acrossScopes: true if they will always share a server.',
  },
  LEDGER_HOLD_REFUSED: {
    class: 'RefusedError',
    retryable: false,
    what: 'The amount could not be put aside, or the hold under this operation id has ended.',
    next: 'Look at details.verdict: what is available and when to try again, or how the hold ended.',
  },
  LEDGER_HOLD_EXPIRING: {
    class: 'ContentionError',
    retryable: false,
    what: 'The hold is about to expire; the work under it should end.',
    next: 'Settle what was done so far, or call hold.extend() in time; choose a longer ttl.',
  },
  LEDGER_OUTCOME_UNKNOWN: {
    class: 'UnknownOutcomeError',
    retryable: true,
    what: 'The connection was lost before the ledger answered, also when asked again: the operation may or may not have been applied.',
    next: 'Call again with the same operationId once the database is reachable; it is applied at most once.',
  },
  LEDGER_ANSWER_UNREADABLE: {
    class: 'SchemaError',
    retryable: false,
    what: 'The functions in the database answered in a form that this version does not know.',
    next: 'Run `holdfast doctor`, then `holdfast migrate`.',
  },
} as const
