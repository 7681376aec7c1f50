/** The part of the table about transactions that Holdfast opens. */
export const transactionCodes = {
  TX_NESTED: {
    class: 'UsageError',
    retryable: false,
    what: 'A new transaction was asked for inside one that is already open on the same database.',
    next: 'Pass the tx you have as the first argument, as in locks.acquire(tx, …) or consume(tx, …): the call joins its transaction. A second connection here could wait for itself for ever.',
  },
  TX_SESSION_SHARED: {
    class: 'DriverError',
    retryable: false,
    what: 'The client gave one session to two transactions, or one on which somebody had left a transaction open. A lock would exclude nobody, and the first COMMIT would end both.',
    next: 'Look for a connection that is released without COMMIT or ROLLBACK: that one was closed. Use a client or pool that gives every transaction a connection of its own. Transactions that were open on this session meanwhile fail with errors of their own; check what they wrote.',
  },
  TX_ROLLED_BACK: {
    class: 'UsageError',
    retryable: false,
    what: 'COMMIT was answered with ROLLBACK: a statement had failed and the error was swallowed, so nothing was saved.',
    next: 'Let the error of the failed statement out of the body, or wrap that statement in a savepoint.',
  },
  TX_ENDED_INSIDE: {
    class: 'UsageError',
    retryable: false,
    what: 'A body ended the transaction that it was given, or tried to. It ran COMMIT or ROLLBACK, released its connection, or swallowed an error with which the server ended it.',
    next: 'Return from the body to commit, throw to roll back, use a savepoint to undo a part. details.ended is refused (nothing is saved), committed, rolled back or unknown.',
  },
  TX_UNAWAITED: {
    class: 'UsageError',
    retryable: false,
    what: 'The body returned before statements of its own were sent and answered, so the transaction was rolled back.',
    next: 'Await every statement in the body: look for a missing await, a promise that is not returned, or a list of queries that is returned without Promise.all.',
  },
  TX_HANDLE_ENDED: {
    class: 'UsageError',
    retryable: false,
    what: 'A transaction handle was used after its body had returned; the statement was not sent.',
    next: 'Use the handle only while its body runs, and await all work that uses it before the body returns.',
  },
  TX_ROOT_CLIENT: {
    class: 'UsageError',
    retryable: false,
    what: 'The root client was used inside a body, where its statements run outside the transaction and see none of its writes.',
    next: 'Use the tx that the body was given. If a second connection is meant, allow it with tx: { rootClient: "allow" }.',
  },
  TX_SERIALIZATION: {
    class: 'ContentionError',
    retryable: true,
    what: 'The transaction conflicted with others (SQLSTATE 40001), and no attempt was left; details.attempts says how often it ran.',
    next: 'Take a lock first so that writers queue, or allow more attempts with retry.',
  },
  TX_DEADLOCK: {
    class: 'ContentionError',
    retryable: true,
    what: 'The transaction was chosen as a deadlock victim (SQLSTATE 40P01), and no attempt was left; details.attempts says how often it ran.',
    next: 'Take locks in one call so that they are sorted, advisory locks before rows.',
  },
  TX_DEADLINE: {
    class: 'ContentionError',
    retryable: true,
    what: 'The transaction did not finish before its deadline and was rolled back, or was not begun because too little time was left.',
    next: 'Shorten the body, move slow I/O out of it, or raise deadline. If it was not begun, the pool has more to do than it can.',
  },
  TX_CLIENT_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: "The client's own transaction timer ran out and it rolled back.",
    next: 'Raise the timeout of the client (Prisma: transactionTimeoutMs of fromPrisma), or shorten the body.',
  },
} as const
