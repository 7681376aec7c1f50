/** The part of the table about looking at a database, and what is done about it. */
export const observeCodes = {
  OBSERVE_RECORDING: {
    class: 'UsageError',
    retryable: false,
    what: 'A recorder over this client is running already; with two, everything would be counted twice.',
    next: 'Start one recorder for each pool of a process, and stop it before another is started.',
  },
  OBSERVE_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'A query of the observer took longer than allowed, and the server ended it.',
    next: 'Try again when the server is less busy, or raise statementTimeoutMs.',
  },
  OBSERVE_NOT_SHOWN: {
    class: 'DriverError',
    retryable: false,
    what: 'The server does not keep what has to be looked at, so that nobody could be seen to wait.',
    next: 'Start MySQL with performance_schema = ON, which is its default.',
  },
  OBSERVE_NO_SUCH_SESSION: {
    class: 'UsageError',
    retryable: false,
    what: 'No client of this database has a session with this process id.',
    next: 'Look at the sessions again: it may have ended. Sessions of other databases, of the server itself and our own are left alone.',
  },
  OBSERVE_RIGHT_MISSING: {
    class: 'UsageError',
    retryable: false,
    what: 'The role of this connection may not see what the session does, or may not end it; nothing was done.',
    next: 'Let an administrator run the GRANT in the message. PostgreSQL: pg_read_all_stats to see a session, pg_signal_backend to end it; only a superuser ends the session of a superuser. MariaDB and MySQL: PROCESS to see it, CONNECTION ADMIN or CONNECTION_ADMIN to end it.',
  },
  OBSERVE_TRANSACTION_OVER: {
    class: 'UsageError',
    retryable: false,
    what: 'The session is not in the transaction that was seen: that one is over, and nothing was done.',
    next: 'Look at the session again, and decide about what it does now.',
  },
  OBSERVE_NO_SUCH_SCHEDULE: {
    class: 'UsageError',
    retryable: false,
    what: 'No schedule of this name was ever started in this database.',
    next: 'Look at the list of schedules; names are exact.',
  },
} as const
