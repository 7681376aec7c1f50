export type { AmbientTransactions } from './ambient.ts'
export {
  type ClsAdapter,
  clsAdapter,
  type ClsTransactionHost,
  type ClsTransactionHosts,
  clsTransactions,
} from './cls.ts'
export { CurrentTransaction } from './current-transaction.ts'
export { HoldfastExceptionFilter, VerdictRefused } from './exception-filter.ts'
export { type AsyncMethodDecorator, Guarded } from './guarded.ts'
export { type HealthResult, HoldfastHealthIndicator } from './health-indicator.ts'
export {
  HoldfastModule,
  type HoldfastModuleAsyncOptions,
  type HoldfastModuleOptions,
} from './holdfast-module.ts'
export { Idempotent, type NestRequest } from './idempotent.ts'
export { Once, type OnceMethodOptions } from './once.ts'
export { Tick, type TickOptions } from './tick.ts'
export { HOLDFAST, InjectHoldfast } from './tokens.ts'
