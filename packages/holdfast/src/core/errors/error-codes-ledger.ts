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
    what: 'An amount is too large to be an exact JavaScript number. Nothing was changed.',
    next: "Declare the book with amounts: 'bigint'; in ledger.apply, say it in its options.",
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
  LEDGER_SCOPE_FORGOTTEN: {
    class: 'UsageError',
    retryable: false,
    what: 'No scope was given, and this key is in use in another scope: it would have become another account. Nothing was changed.',
    next: 'Give the scope it is used with; if another account is meant, say so: scope: key.',
  },
  LEDGER_BOOK_DIFFERS: {
    class: 'UsageError',
    retryable: false,
    what: 'A book is declared differently than where it was first used. Nothing was changed.',
    next: 'Declare it alike (details.differs), or take another name; to change it for good, run `holdfast ledger redeclare`.',
  },
  LEDGER_MOVEMENTS_GONE: {
    class: 'RefusedError',
    retryable: false,
    what: 'Movements that a follower has not read were dropped, so it would have skipped them. Nothing was read.',
    next: 'Find out who dropped them (maintain does not); then ledger.unfollow(name) and follow under a new name from now on.',
  },
  LEDGER_HOLD_REFUSED: {
    class: 'RefusedError',
    retryable: false,
    what: 'The amount could not be reserved, or the hold under this operation id has ended.',
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
  LEDGER_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The operation could not be applied within its limit, and was not: a transaction of somebody else has the account, or the database is too slow.',
    next: 'See blockers for who has it; end that transaction sooner, retry later or raise wait.',
  },
  LEDGER_OVERLOADED: {
    class: 'ContentionError',
    retryable: true,
    what: 'Too many operations of this process wait for the database already; this one was not applied.',
    next: 'Refuse some of the work, or raise ledger.queue; details.waiting says how many there are.',
  },
  LEDGER_ANSWER_UNREADABLE: {
    class: 'UnknownOutcomeError',
    retryable: false,
    what: 'The functions in the database answered in a form that this version does not know: an operation may have been applied.',
    next: 'Run `holdfast doctor`, then `holdfast migrate`; then call again with the same operationId, which is applied at most once.',
  },
} as const
