/** The part of the table about connections: what was lost, and whether anything can have happened. */
export const connectionCodes = {
  COMMIT_UNKNOWN: {
    class: 'UnknownOutcomeError',
    retryable: false,
    what: 'The connection was lost during COMMIT, or the wait for the standby was cancelled. The transaction may or may not have happened, or may not survive a failover.',
    next: 'Do not repeat blindly. Look for its effect (a unique key or operation id) in a transaction that is durable, then decide.',
  },
  CONNECTION_LOST: {
    class: 'DriverError',
    retryable: true,
    what: 'The connection was lost before COMMIT; the database rolled the transaction back.',
    next: 'Safe to run again from the start once the database is reachable.',
  },
  CONNECTION_UNAVAILABLE: {
    class: 'DriverError',
    retryable: true,
    what: 'No connection to a database that takes writes could be had; nothing was done.',
    next: 'Safe to run again once the primary is reachable; cause says what was answered, if anything.',
  },
  POOL_STARVED: {
    class: 'DriverError',
    retryable: true,
    what: 'All connections of the pool are in use, and none came back within the limit; nothing was sent.',
    next: 'See details.held for what uses them. Do not ask the pool for a second connection inside a transaction: pass its handle on. Else raise the size of the pool, or shorten transactions.',
  },
  CIRCUIT_OPEN: {
    class: 'DriverError',
    retryable: true,
    what: 'The database could not be reached several times in a row, so that nothing is sent for a while: the protected work was refused.',
    next: 'Try again in details.retryInMs milliseconds; until then nothing that needs protection may be done without it.',
  },
  HOLDFAST_CLOSING: {
    class: 'ContentionError',
    retryable: true,
    what: 'The process is shutting down and did not wait for this work any longer.',
    next: 'Stop soon: settle what was done, or reject to release what was reserved. Give close() more time if the work needs it.',
  },
  HOLDFAST_CLOSED: {
    class: 'UsageError',
    retryable: false,
    what: 'This Holdfast was closed, and nothing new is begun with it; nothing was sent.',
    next: 'Stop what calls it (an HTTP server, timers) before close(). Work that was under way may still make its own calls.',
  },
} as const
