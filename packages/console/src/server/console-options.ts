import {
  aBoolean,
  aFunction,
  aNumber,
  anObject,
  aText,
  either,
  type KnownOptions,
  type OptionForm,
  texts,
} from '../core/known-options.ts'
import type { Authenticate } from '../auth/authenticator.ts'
import type { Revocations } from '../auth/revocations.ts'
import type { ConsoleToken } from '../auth/tokens.ts'
import type { Action } from '../core/wire.ts'
import type { TrustProxy } from '../http/trusted-proxies.ts'
import type { RedactOptions } from '../watch/redactor.ts'
import type { DatabaseSource, MetricsSource } from '../watch/watched-database.ts'
import type { Audit } from './actions.ts'

/** Who may look. Without tokens and without `authenticate` the console is closed to everybody. */
export interface ConsoleAuth {
  readonly tokens?: readonly ConsoleToken[]
  /**
   * Says who somebody is, by what the host application knows of the request: its own session, the header of
   * a proxy that authenticates. Undefined is nobody. It must not trust what anybody can send.
   */
  readonly authenticate?: Authenticate
  /**
   * The same in every process that serves the console: what `authenticate` and masks need there; at least 32
   * characters. @defaultValue random, made at the start
   */
  readonly secret?: string
  /**
   * Where all processes with this secret remember who has logged out. Then each of them takes the sessions of all, also
   * after a restart. @defaultValue a session is good only at the process that started it
   */
  readonly revocations?: Revocations
  /** A session ends after so long without a request. @defaultValue 30 */
  readonly idleMinutes?: number
  /** A session ends so long after the login. @defaultValue 12 */
  readonly absoluteHours?: number
}

/** What is remembered, so that one can look back. */
export interface HistoryOptions {
  /** @defaultValue 15 */
  readonly minutes?: number
  /** Per database. @defaultValue 16 */
  readonly maxMegabytes?: number
  /** Look so often also while nobody listens. @defaultValue never */
  readonly everyMs?: number
}

/** Options of `createConsole`. */
export interface ConsoleOptions extends DatabaseSource {
  /** Several databases by name, instead of `driver` or `observer`. */
  readonly databases?: Readonly<Record<string, DatabaseSource>>
  readonly auth?: ConsoleAuth
  /** The path under which browsers see it: `/ops/console`. @defaultValue the root, or what an adapter knows */
  readonly base?: string
  /** Names under which it may be asked for; others are refused. An entry without a port stands for all ports. @defaultValue any */
  readonly hosts?: readonly string[]
  /** Origins of its pages where a proxy changes the host: `https://ops.example.com`. */
  readonly origins?: readonly string[]
  /** What is masked before it leaves the server; `true` is keys and queries. @defaultValue nothing */
  readonly redact?: boolean | RedactOptions
  /** What the role `operate` may do. @defaultValue nothing */
  readonly actions?: readonly Action[]
  /** Hears of every action, before and after. @defaultValue a line of JSON on the standard output */
  readonly audit?: Audit
  readonly history?: HistoryOptions
  /**
   * Answers `GET metrics`: what `createMetrics` of `holdfast/observe` made for this process, or `true` for
   * metrics of what the console sees. @defaultValue there are none
   */
  readonly metrics?: boolean | MetricsSource
  /**
   * Proxies in front whose `x-forwarded-for` is believed: how many there are, or their addresses
   * (`['10.0.0.0/8']`). Anybody can send that header, so say no more than is so. @defaultValue none
   */
  readonly trustProxy?: TrustProxy
  /** Instead of it: where a request comes from, to slow down who guesses tokens. @defaultValue what an adapter knows */
  readonly clientAddress?: (request: Request) => string | undefined
}

const aList: OptionForm = [Array.isArray, 'a list']
/** Whoever reads it says more. */
const anything: OptionForm = [() => true, 'anything']

const source = {
  driver: anObject,
  observer: anObject,
  schema: aText,
  claims: aList,
  ownApplication: aText,
} satisfies KnownOptions<DatabaseSource>

/** All options of one of several databases. */
export const databaseSource: KnownOptions<DatabaseSource> = source

/** All options of `createConsole`. */
export const consoleOptions: KnownOptions<ConsoleOptions> = {
  ...source,
  databases: anObject,
  auth: {
    tokens: aList,
    authenticate: aFunction,
    secret: aText,
    revocations: anObject,
    idleMinutes: aNumber,
    absoluteHours: aNumber,
  } satisfies KnownOptions<ConsoleAuth>,
  base: aText,
  hosts: texts,
  origins: texts,
  redact: anything,
  actions: aList,
  audit: aFunction,
  history: {
    minutes: aNumber,
    maxMegabytes: aNumber,
    everyMs: aNumber,
  } satisfies KnownOptions<HistoryOptions>,
  metrics: either(aBoolean, anObject),
  trustProxy: either(aNumber, texts),
  clientAddress: aFunction,
}
