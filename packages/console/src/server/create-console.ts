import { Authenticator } from '../auth/authenticator.ts'
import { FailedAttempts } from '../auth/failed-attempts.ts'
import type { LoginLink } from '../auth/login-link.ts'
import { hashOf, randomKey } from '../auth/secret.ts'
import { Sessions } from '../auth/sessions.ts'
import { knownTokens } from '../auth/tokens.ts'
import { assertOptions } from '../core/known-options.ts'
import { ConsoleOptionError } from '../core/option-error.ts'
import { checkedBase } from '../http/base-path.ts'
import { checkedOrigin } from '../http/cookie.ts'
import { clientBehind } from '../http/trusted-proxies.ts'
import { type RedactOptions, Redactor } from '../watch/redactor.ts'
import type { ReportRules } from '../watch/report-rules.ts'
import {
  type DatabaseSource,
  watchDatabase,
  type WatchedDatabase,
} from '../watch/watched-database.ts'
import { allActions, type Audit } from './actions.ts'
import { type ConsoleOptions, consoleOptions, databaseSource } from './console-options.ts'
import { type StreamTimes, streamTimes } from './event-stream.ts'
import { Handler } from './handler.ts'

/** A console. */
export interface HoldfastConsole {
  /** Answers a request. Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Ends all streams and stops looking. The driver stays open: it is the caller's. */
  readonly close: () => void
}

/** What only the command and our tests set. */
export interface ConsoleInside {
  readonly now: () => number
  readonly loginLink: LoginLink | undefined
  readonly pollMs: number
  readonly streamTimes: StreamTimes
  readonly reportRules: ReportRules
}

/**
 * A console over one database or several, as a handler of requests. It is closed until `auth` says who may
 * look, and changes nothing until `actions` says what may be done.
 *
 * @example
 * const holdfastConsole = createConsole({
 *   driver: fromPg(pool),
 *   base: '/holdfast',
 *   auth: { tokens: [{ name: 'on-call', role: 'view', token: process.env.CONSOLE_TOKEN }] },
 * })
 * app.mount('/holdfast', holdfastConsole.fetch) // Hono
 * @throws ConsoleOptionError if an option would not protect, or not work
 */
export function createConsole(options: ConsoleOptions): HoldfastConsole {
  return assembleConsole(options, {})
}

/** The same, with its inside open. */
export function assembleConsole(
  options: ConsoleOptions,
  inside: Partial<ConsoleInside>,
): HoldfastConsole {
  assertOptions(options, consoleOptions)
  const { auth = {}, history = {}, redact = false, actions = [] } = options
  const { now = Date.now, loginLink, pollMs = 1_000 } = inside
  const unknown = actions.find((action) => !allActions.includes(action))
  if (unknown !== undefined) throw new ConsoleOptionError(`actions: ${unknown} is none`)
  if (auth.secret !== undefined && auth.secret.length < 32) {
    throw new ConsoleOptionError('auth.secret has at least 32 characters')
  }
  if (auth.revocations !== undefined && auth.secret === undefined) {
    throw new ConsoleOptionError('auth.revocations needs auth.secret, the same in every process')
  }
  const key = auth.secret === undefined ? randomKey() : hashOf(auth.secret)
  const sessions = new Sessions(
    key,
    {
      idleMs: minutesOf(auth.idleMinutes ?? 30, 'auth.idleMinutes'),
      absoluteMs: 60 * minutesOf(auth.absoluteHours ?? 12, 'auth.absoluteHours'),
    },
    now,
    auth.revocations,
  )
  const authenticator = new Authenticator({
    tokens: knownTokens(auth.tokens ?? []),
    authenticate: auth.authenticate,
    loginLink,
    sessions,
    attempts: new FailedAttempts(now),
    now,
  })
  const redactor = new Redactor(checkedRedact(redact), key, inside.reportRules)
  const minutes = history.minutes ?? 15
  minutesOf(minutes, 'history.minutes')
  const limits = {
    minutes,
    maxBytes: (history.maxMegabytes ?? 16) * 1_048_576,
    pollMs,
    backgroundMs: history.everyMs === undefined ? undefined : Math.max(1_000, history.everyMs),
  }
  // A console that is closed looks at nothing either.
  const databases: WatchedDatabase[] = authenticator.closed
    ? []
    : Object.entries(sourcesOf(options)).map(([name, source]) =>
        watchDatabase(name, source, redactor, limits, options.metrics ?? false),
      )
  const handler = new Handler({
    authenticator,
    sessions,
    redactor,
    databases,
    base: options.base === undefined ? undefined : checkedBase(options.base),
    hosts: options.hosts?.map((host) => host.toLowerCase()),
    origins: (options.origins ?? []).map(checkedOrigin),
    actions,
    audit: options.audit ?? auditLine,
    clientAddress: options.clientAddress,
    clientOf: clientBehind(options.trustProxy),
    info: { pollMs, history: { minutes, always: limits.backgroundMs !== undefined } },
    streamTimes: inside.streamTimes ?? streamTimes,
  })
  return {
    fetch: (request) => handler.answer(request),
    close: () => {
      for (const database of databases) database.close()
    },
  }
}

function sourcesOf(options: ConsoleOptions): Readonly<Record<string, DatabaseSource>> {
  const { databases } = options
  if (databases === undefined) return { main: options }
  const wrong = Object.keys(databases).find((name) => !/^[\w .-]{1,40}$/.test(name))
  if (wrong !== undefined || Object.keys(databases).length === 0) {
    throw new ConsoleOptionError(
      'databases: at least one, under names of letters, digits and . _ -',
    )
  }
  for (const [name, source] of Object.entries(databases))
    assertOptions(source, databaseSource, `databases.${name}`)
  return databases
}

function minutesOf(minutes: number, option: string): number {
  if (Number.isFinite(minutes) && minutes > 0) return minutes * 60_000
  throw new ConsoleOptionError(`${option} is a number above zero`)
}

const auditLine: Audit = (entry) => {
  process.stdout.write(`${JSON.stringify({ event: 'holdfast.console.action', ...entry })}\n`)
}

/** What is not understood must not show what somebody wanted masked. @throws ConsoleOptionError */
function checkedRedact(redact: NonNullable<ConsoleOptions['redact']>): RedactOptions {
  if (typeof redact === 'boolean') return { keys: redact, queries: redact }
  const { keys = false, queries = false, ...unknown } = Object(redact) as RedactOptions
  const isMask = typeof keys === 'boolean' || typeof keys === 'function'
  if (typeof redact === 'object' && isMask && typeof queries === 'boolean') {
    if (Object.keys(unknown).length === 0) return redact
  }
  throw new ConsoleOptionError('redact is true, false, or { keys, queries }')
}
