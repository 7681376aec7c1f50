import type { KnownOptions } from '../core/known-options.ts'
import type { ResolveOptions } from './ask-again.ts'
import type { RetryPolicy } from './retry.ts'
import type { RunOptions, TxOptions } from './run.ts'

export const resolveOptions: KnownOptions<ResolveOptions> = {
  resolveFor: 'checked',
}

export const retryPolicy: KnownOptions<RetryPolicy> = {
  attempts: 'checked',
  budget: 'checked',
  budgetMs: 'checked',
  baseMs: 'checked',
  capMs: 'checked',
  on: 'checked',
  onlyOn: 'checked',
}

export const txOptions: KnownOptions<TxOptions> = {
  deadline: 'checked',
  retry: 'checked',
  onRetry: 'function',
}

export const runOptions: KnownOptions<RunOptions> = {
  ...txOptions,
  isolation: 'checked',
  deadlineMs: 'checked',
  signal: 'signal',
  durable: 'boolean',
  scopes: 'texts',
}
