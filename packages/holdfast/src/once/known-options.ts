import type { KnownOptions } from '../core/known-options.ts'
import { resolveOptions, runOptions, txOptions } from '../tx/known-options.ts'
import type { RunOptions } from '../tx/run.ts'
import type { IdempotencyOptions } from './http.ts'
import type { OnceOptions, OnceRoomOptions } from './index.ts'

export const onceRoomOptions: KnownOptions<OnceRoomOptions> = {
  ...resolveOptions,
  wait: 'checked',
  tx: txOptions,
  schema: 'text',
}

export const onceOptions: KnownOptions<OnceOptions> = {
  scope: 'checked',
  keep: 'checked',
  payload: 'checked',
  wait: 'checked',
}

export const onceAloneOptions: KnownOptions<OnceOptions & RunOptions> = {
  ...runOptions,
  ...onceOptions,
}

export const forgetOptions: KnownOptions<{ readonly limit?: number }> = {
  limit: 'checked',
}

export const idempotencyOptions: KnownOptions<IdempotencyOptions<never>> = {
  scope: 'function',
  required: 'boolean',
  keep: 'checked',
  keepIf: 'function',
  header: 'checked',
}
