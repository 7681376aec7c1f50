/**
 * What a driver is made of: for writing one for a client that Holdfast does not know. See docs/write-a-driver.md.
 */
export type {
  Driver,
  DriverCapabilities,
  Executor,
  Isolation,
  Listening,
  Row,
  Session,
  SessionDriver,
  Statement,
  Transaction,
  TransactionSettings,
  TransactionState,
  Value,
} from '../core/driver.ts'
export { bodyFailure, commitFailure, openingFailure } from '../core/commit-failure.ts'
export { assertClient, type ClientKind } from '../core/client-kind.ts'
export { holdfastError, isHoldfastError } from '../core/errors.ts'
export { asOurs } from '../core/open-transactions.ts'
export { isConnectionLoss, sqlStateOf } from '../core/sql-state.ts'
export { postgres } from '../engines/postgres/engine.ts'
export { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
export { type CallbackTransaction, type Held, runInCallback } from './callback-transaction.ts'
export { assertNoOptions } from './known-options.ts'
export { type Ended, Leash } from './leash.ts'
export { inNativeSavepoint } from './native-savepoint.ts'
export { pgCancel } from './pg-cancel.ts'
export { ConnectionWatch, type PgConnection, pgEndings } from './pg-connection.ts'
export { cameToRest, isBusy, leashedClient } from './pg-leash.ts'
export { pgTransactionState } from './pg-state.ts'
export { poolOf } from './pool-size.ts'
export { watchRoot, watchTaking } from './root-client.ts'
export { hearNotice, hearPool, unlessHeard } from './sync-wait.ts'
