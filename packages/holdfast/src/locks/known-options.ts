import type { KnownOptions } from '../core/known-options.ts'
import { runOptions, txOptions } from '../tx/known-options.ts'
import type { AcquireOptions } from './acquire-options.ts'
import type { HoldWatchOptions } from './hold-watch.ts'
import type { GuardOptions, LockOptions, TryGuardOptions } from './index.ts'

export const acquireOptions: KnownOptions<AcquireOptions> = {
  wait: 'checked',
  waitMs: 'checked',
  keepTransaction: 'boolean',
  allowStaleSnapshot: 'boolean',
}

export const tryAcquireOptions: KnownOptions<Pick<AcquireOptions, 'allowStaleSnapshot'>> = {
  allowStaleSnapshot: 'boolean',
}

export const guardOptions: KnownOptions<GuardOptions> = {
  ...runOptions,
  ...acquireOptions,
  queue: 'boolean',
}

export const tryGuardOptions: KnownOptions<TryGuardOptions> = {
  ...runOptions,
  ...tryAcquireOptions,
  queue: 'boolean',
}

export const watchOptions: KnownOptions<Partial<HoldWatchOptions>> = {
  heldLongMs: 'checked',
  heldTooLongMs: 'checked',
}

export const lockOptions: KnownOptions<LockOptions> = {
  wait: 'checked',
  waitMs: 'checked',
  tx: txOptions,
  annotate: 'boolean',
  strict: 'boolean',
  watch: 'checked',
  queue: 'boolean',
}
