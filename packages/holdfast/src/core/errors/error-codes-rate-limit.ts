/** Of rate limits. */
export const rateLimitCodes = {
  RATE_LIMIT_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'A rate limit was to be used in a transaction, but the handle is not inside one.',
    next: 'Pass the transaction handle your client gave you, or no handle at all: then the call is a transaction of its own.',
  },
  RATE_LIMIT_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'A call of a rate limit was not decided within its limit and was not counted: an open transaction has used the same key, or the database is too slow.',
    next: 'In a transaction of your own, call the rate limit last, and commit soon. Else retry later, or raise wait.',
  },
  RATE_LIMIT_OVERLOADED: {
    class: 'ContentionError',
    retryable: true,
    what: 'Too many calls of a rate limit wait for the database already; this one was not counted.',
    next: 'Refuse the request; details.waiting says how many calls wait.',
  },
} as const
