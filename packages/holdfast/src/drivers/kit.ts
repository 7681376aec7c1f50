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
export { bodyFailure, commitFailure, openingFailure } from '../core/errors/commit-failure.ts'
export { assertClient, type ClientKind } from '../core/client-kind.ts'
export { holdfastError, isHoldfastError } from '../core/errors.ts'
export { asOurs } from '../core/open-transactions.ts'
export { isConnectionLoss, sqlStateOf } from '../core/sql-state.ts'
export { postgres } from '../engines/postgres/engine.ts'
export { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
export { type CallbackTransaction, type Held, runInCallback } from './parts/callback-transaction.ts'
export { assertNoOptions } from './parts/no-options.ts'
export type { Ended } from '../core/errors/ended-inside.ts'
export { Leash } from './parts/leash.ts'
export { inNativeSavepoint } from './parts/native-savepoint.ts'
export { pgCancel } from './pg/pg-cancel.ts'
export { ConnectionWatch, type PgConnection, pgEndings } from './pg/pg-connection.ts'
export { cameToRest, isBusy, leashedClient } from './pg/pg-leash.ts'
export { pgTransactionState } from './pg/pg-state.ts'
export { poolOf } from './parts/pool-size.ts'
export { aloneOnTaken, noteTaken, watchRoot, watchTaking } from './parts/root-client.ts'
export { hearNotice, hearPool, unlessHeard } from './parts/sync-wait.ts'
