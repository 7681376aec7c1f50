import type { ApiError } from './wire.ts'

/** The name of a refusal; programs may rely on it. */
export type RefusalCode =
  | 'BAD_REQUEST'
  | 'NOT_LOGGED_IN'
  | 'TOKEN_WRONG'
  | 'TOKEN_EXPIRED'
  | 'SESSION_EXPIRED'
  | 'ROLE_TOO_LOW'
  | 'ACTION_NOT_ALLOWED'
  | 'CROSS_ORIGIN'
  | 'CSRF_TOKEN_WRONG'
  | 'STATS_RIGHT_MISSING'
  | 'SIGNAL_RIGHT_MISSING'
  | 'PROCESS_RIGHT_MISSING'
  | 'KILL_RIGHT_MISSING'
  | 'NOT_OFFERED'
  | 'LOCKS_NOT_SHOWN'
  | 'NOT_FOUND'
  | 'NO_SUCH_SCHEDULE'
  | 'NO_SUCH_SESSION'
  | 'NO_SUCH_DATABASE'
  | 'NO_SUCH_JOB'
  | 'JOB_KEY_TAKEN'
  | 'METHOD'
  | 'BODY_TOO_SLOW'
  | 'SCHEMA_MISSING'
  | 'NOT_CONFIRMED'
  | 'TRANSACTION_OVER'
  | 'BODY_TOO_LARGE'
  | 'URL_TOO_LONG'
  | 'CONTENT_TYPE'
  | 'BAD_HOST'
  | 'TOO_MANY_ATTEMPTS'
  | 'FAILED'
  | 'DATABASE_FAILED'
  | 'BUSY'
  | 'CLOSED'
  | 'DATABASE_SLOW'

interface Entry {
  readonly status: number
  readonly message: string
  readonly next: string
}

/**
 * Every answer that is not what was asked for. The texts are fixed, so that nothing of a request, of the
 * database or of this machine can get into them.
 */
export const refusals: Readonly<Record<RefusalCode, Entry>> = {
  BAD_REQUEST: {
    status: 400,
    message: 'The request is not understood.',
    next: 'Look the route up in the documentation of the console.',
  },
  NOT_LOGGED_IN: {
    status: 401,
    message: 'Nobody is logged in.',
    next: 'Log in with a token, or send it as a bearer token.',
  },
  TOKEN_WRONG: {
    status: 401,
    message: 'The token is not known here.',
    next: 'Use one of the tokens that the console was configured with.',
  },
  TOKEN_EXPIRED: {
    status: 401,
    message: 'The token has expired.',
    next: 'Ask for a new one.',
  },
  SESSION_EXPIRED: {
    status: 401,
    message: 'The session has ended.',
    next: 'Log in again.',
  },
  ROLE_TOO_LOW: {
    status: 403,
    message: 'The role of this token does not allow that.',
    next: 'Use a token with another role.',
  },
  ACTION_NOT_ALLOWED: {
    status: 403,
    message: 'This action is not switched on.',
    next: 'Name it in the option actions of the console, or of the token.',
  },
  CROSS_ORIGIN: {
    status: 403,
    message: 'The request comes from another site.',
    next: 'Use the pages of the console itself, or a bearer token from a program.',
  },
  CSRF_TOKEN_WRONG: {
    status: 403,
    message: 'The header x-holdfast-csrf is missing or belongs to another session.',
    next: 'Send the value of csrf from api/info.',
  },
  STATS_RIGHT_MISSING: {
    status: 403,
    message: 'The role of the console may not see what this session does, and nothing was done.',
    next: 'Run GRANT pg_read_all_stats TO the role that the console connects as; see docs/security.md.',
  },
  SIGNAL_RIGHT_MISSING: {
    status: 403,
    message: 'The role of the console may not end this session, and nothing was done.',
    next: 'Run GRANT pg_signal_backend TO the role that the console connects as. Only a superuser ends the session of a superuser.',
  },
  PROCESS_RIGHT_MISSING: {
    status: 403,
    message: 'The account of the console may not see who waits for whom.',
    next: 'Run GRANT PROCESS ON *.* TO the account that the console connects as; on MySQL also GRANT SELECT ON performance_schema.*. Then start the console again.',
  },
  KILL_RIGHT_MISSING: {
    status: 403,
    message: 'The account of the console may not end what others run, and nothing was done.',
    next: 'Run GRANT CONNECTION ADMIN ON *.* (on MySQL: CONNECTION_ADMIN) TO the account that the console connects as, and start the console again.',
  },
  NOT_OFFERED: {
    status: 404,
    message: 'The console has this on PostgreSQL only.',
    next: 'On MariaDB and MySQL it has Now and Doctor; see docs/mysql.md.',
  },
  LOCKS_NOT_SHOWN: {
    status: 409,
    message: 'This MySQL server runs without its performance schema, so it shows no locks.',
    next: 'Start the server with performance_schema=ON.',
  },
  NOT_FOUND: { status: 404, message: 'There is nothing here.', next: 'Check the address.' },
  NO_SUCH_SESSION: {
    status: 404,
    message: 'There is no such session any more, or it is none that may be touched.',
    next: 'Look at the lock tree again.',
  },
  NO_SUCH_SCHEDULE: {
    status: 404,
    message: 'No schedule of this name was ever started in this database.',
    next: 'Look at the list of schedules again; names are exact.',
  },
  NO_SUCH_DATABASE: {
    status: 404,
    message: 'The console looks at no database of that name.',
    next: 'Take one of those in api/info.',
  },
  NO_SUCH_JOB: {
    status: 404,
    message: 'No dead job has this id, or no longer.',
    next: 'Look at the list of dead jobs again.',
  },
  JOB_KEY_TAKEN: {
    status: 409,
    message: 'Another job has the unique key of this one by now, so it stays dead.',
    next: 'Let the other one finish, or delete this one.',
  },
  METHOD: { status: 405, message: 'Not with this method.', next: 'See the header allow.' },
  BODY_TOO_SLOW: {
    status: 408,
    message: 'The body did not arrive in time.',
    next: 'Send it at once.',
  },
  SCHEMA_MISSING: {
    status: 409,
    message:
      'Holdfast has no schema in this database, an older one, or one that this role may not use.',
    next: 'Run holdfast migrate, or grant what docs/security.md lists; Now and Doctor need neither.',
  },
  NOT_CONFIRMED: {
    status: 409,
    message: 'The action was not confirmed.',
    next: 'Repeat in confirm what the action is about.',
  },
  TRANSACTION_OVER: {
    status: 409,
    message: 'The transaction that was seen is over, and nothing was done.',
    next: 'Look at the session again, and decide about what it does now.',
  },
  BODY_TOO_LARGE: { status: 413, message: 'The body is too large.', next: 'Send less.' },
  URL_TOO_LONG: { status: 414, message: 'The address is too long.', next: 'Ask for less.' },
  CONTENT_TYPE: {
    status: 415,
    message: 'The body has the wrong type.',
    next: 'Send application/json.',
  },
  BAD_HOST: {
    status: 421,
    message: 'The console is not known under this host name.',
    next: 'Use the address that it printed, or declare its host: --public-url of the command, the option hosts or origins of createConsole.',
  },
  TOO_MANY_ATTEMPTS: {
    status: 429,
    message: 'Too many wrong tokens.',
    next: 'Wait as long as the header retry-after says.',
  },
  FAILED: {
    status: 500,
    message: 'The console failed.',
    next: 'The process that runs it has the reason on its channel holdfast:console.failed.',
  },
  DATABASE_FAILED: {
    status: 502,
    message: 'The database did not answer as it should.',
    next: 'Check that it is reachable and what the role of the console may do; see Doctor.',
  },
  BUSY: {
    status: 503,
    message: 'Too many are looking at once.',
    next: 'Try again in a few seconds.',
  },
  CLOSED: {
    status: 503,
    message: 'This console is closed: it has no credentials.',
    next: 'Give createConsole tokens or authenticate in the option auth; see docs/console.md.',
  },
  DATABASE_SLOW: {
    status: 504,
    message: 'The database took too long, and the question was given up.',
    next: 'Ask for less, or look at Now for what holds the server up.',
  },
}

/** A request is refused, with a text from the table. */
export class Refusal extends Error {
  readonly code: RefusalCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ApiError

  constructor(
    code: RefusalCode,
    { headers = {}, sqlState }: { headers?: Record<string, string>; sqlState?: string } = {},
  ) {
    const { status, message, next } = refusals[code]
    super(message)
    this.code = code
    this.status = status
    this.headers = headers
    this.body = { code, message, next, ...(sqlState === undefined ? {} : { sqlState }) }
  }
}
