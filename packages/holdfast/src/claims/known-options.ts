import type { KnownOptions } from '../core/known-options.ts'
import { resolveOptions } from '../tx/known-options.ts'
import type { DeadOptions, DeadRows } from './dead.ts'
import type { DeadJobsOptions } from './dead-jobs.ts'
import type {
  BackoffOptions,
  ClaimColumns,
  ClaimsOptions,
  ClaimValues,
  PerKeyOptions,
  RateOptions,
  TransactionClaimsOptions,
} from './layout.ts'
import type { FailOptions } from './lease-claims.ts'
import type { RunOptions } from './run-options.ts'
import type { NewWork, WorkOptions } from './work.ts'

const inTransaction: readonly string[] = ['transaction']

const byLease: readonly string[] = ['lease']

const rateOptions: KnownOptions<RateOptions> = {
  most: 'checked',
  per: 'checked',
  schema: 'text',
}

const perKeyOptions: KnownOptions<PerKeyOptions> = {
  column: 'checked',
  limit: 'checked',
  rate: rateOptions,
}

const backoffOptions: KnownOptions<BackoffOptions> = {
  first: 'checked',
  most: 'checked',
}

const takeColumns: KnownOptions<NonNullable<TransactionClaimsOptions['columns']>> = {
  status: 'checked',
  runAt: 'checked',
  priority: 'checked',
  finishedAt: 'checked',
}

const claimColumns: KnownOptions<ClaimColumns> = {
  ...takeColumns,
  token: 'checked',
  leaseUntil: 'checked',
  attempts: 'checked',
  error: 'checked',
  holder: 'checked',
}

const takeValues: KnownOptions<NonNullable<TransactionClaimsOptions['values']>> = {
  pending: 'checked',
  done: 'checked',
}

const claimValues: KnownOptions<ClaimValues> = {
  ...takeValues,
  claimed: 'checked',
  dead: 'checked',
}

const takePerKey: KnownOptions<NonNullable<TransactionClaimsOptions['perKey']>> = {
  column: 'checked',
}

const tableOptions: KnownOptions<
  Omit<TransactionClaimsOptions, 'columns' | 'values' | 'perKey' | 'mode'>
> = {
  table: 'checked',
  key: 'checked',
  orderBy: 'checked',
  where: 'checked',
  bucket: 'checked',
  select: 'checked',
  deleteDone: 'boolean',
}

export const transactionClaimsOptions: KnownOptions<TransactionClaimsOptions> = {
  ...tableOptions,
  mode: inTransaction,
  columns: takeColumns,
  values: takeValues,
  perKey: takePerKey,
}

export const claimsOptions: KnownOptions<ClaimsOptions> = {
  ...tableOptions,
  ...resolveOptions,
  mode: byLease,
  columns: claimColumns,
  values: claimValues,
  lease: 'checked',
  maxAttempts: 'checked',
  backoff: backoffOptions,
  perKey: perKeyOptions,
  holder: 'text',
}

const perScopeRate: KnownOptions<Omit<RateOptions, 'schema'>> = {
  most: 'checked',
  per: 'checked',
}

const perScope: KnownOptions<NonNullable<WorkOptions['perScope']>> = {
  limit: 'checked',
  rate: perScopeRate,
}

export const workOptions: KnownOptions<WorkOptions> = {
  ...resolveOptions,
  queue: 'checked',
  schema: 'text',
  lease: 'checked',
  backoff: backoffOptions,
  perScope: perScope,
  notify: 'boolean',
  holder: 'text',
}

export const newWork: KnownOptions<NewWork<unknown>> = {
  payload: 'checked',
  scope: 'checked',
  uniqueKey: 'checked',
  whileRunning: 'checked',
  priority: 'checked',
  runAt: 'checked',
  delay: 'checked',
  maxAttempts: 'checked',
}

const poll: KnownOptions<NonNullable<RunOptions<never, never>['poll']>> = {
  min: 'checked',
  max: 'checked',
}

export const runOptions: KnownOptions<RunOptions<never, never>> = {
  concurrency: 'checked',
  poll: poll,
  recoverEvery: 'checked',
  listen: 'checked',
  handler: 'function',
  transactionHandler: 'function',
}

export const failOptions: KnownOptions<FailOptions> = {
  error: 'checked',
  retryInMs: 'checked',
}

export const recoverOptions: KnownOptions<{ readonly limit?: number }> = {
  limit: 'checked',
}

export const listOptions: KnownOptions<NonNullable<Parameters<DeadRows<never>['list']>[0]>> = {
  limit: 'checked',
  after: 'checked',
}

export const deadOptions: KnownOptions<DeadOptions> = {
  by: 'text',
}

export const deadJobsOptions: KnownOptions<DeadJobsOptions> = {
  queue: 'text',
  schema: 'text',
}
