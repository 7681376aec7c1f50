export type { Authenticate } from './auth/authenticator.ts'
export type { Revocations } from './auth/revocations.ts'
export type { ConsoleToken } from './auth/tokens.ts'
export type { Identity } from './core/identity.ts'
export { ConsoleOptionError } from './core/option-error.ts'
export type { RefusalCode } from './core/refusals.ts'
export type {
  Action,
  ApiError,
  DatabaseInfo,
  DeadJobEntry,
  DeadJobList,
  DeadJobReport,
  EngineName,
  HistoryPoint,
  Info,
  LoggedIn,
  Role,
  TreeEvent,
} from './core/wire.ts'
export { toFastify } from './node/to-fastify.ts'
export { type NodeListener, toNode } from './node/to-node.ts'
export type { Audit, AuditEntry } from './server/actions.ts'
export type { ConsoleAuth, ConsoleOptions, HistoryOptions } from './server/console-options.ts'
export { createConsole, type HoldfastConsole } from './server/create-console.ts'
export type { TrustProxy } from './http/trusted-proxies.ts'
export type { RedactOptions } from './watch/redactor.ts'
export type { DatabaseSource, MetricsSource } from './watch/watched-database.ts'
