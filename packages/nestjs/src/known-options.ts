import { UsageError } from 'holdfast/errors'
import type { GuardOptions } from 'holdfast/locks'
import type { RetryPolicy, RunOptions } from 'holdfast/tx'
import type { OnceMethodOptions } from './once.ts'

/** All options that a decorator or the module understands; those of an option have a table of their own. */
export type KnownOptions<O> = {
  readonly [N in keyof Required<O>]: true | Readonly<Record<string, true>>
}

const retry: Readonly<Record<keyof RetryPolicy, true>> = {
  attempts: true,
  budget: true,
  budgetMs: true,
  baseMs: true,
  capMs: true,
  on: true,
  onlyOn: true,
}

const runOptions: KnownOptions<RunOptions> = {
  isolation: true,
  deadline: true,
  deadlineMs: true,
  retry,
  onRetry: true,
  signal: true,
  durable: true,
  scopes: true,
}

export const guardedOptions: KnownOptions<GuardOptions> = {
  ...runOptions,
  wait: true,
  waitMs: true,
  keepTransaction: true,
  allowStaleSnapshot: true,
  queue: true,
}

export const onceOptions: KnownOptions<OnceMethodOptions<never>> = {
  ...runOptions,
  scope: true,
  keep: true,
  payload: true,
  wait: true,
}

/**
 * When the class is read, and not with the first call: in a transaction that is open already some options count for
 * nothing, so that a misspelt one would never be told. What their values are is looked at with the call.
 *
 * @throws OPTION_INVALID
 */
export function assertKnown(given: unknown, known: object, within = ''): void {
  if (given === undefined) return
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw refused(within || 'options', `${within || 'options'} must be an object`)
  const forms = known as Readonly<Record<string, unknown>>
  for (const [name, value] of Object.entries(given)) {
    const option = within === '' ? name : `${within}.${name}`
    const form = Object.hasOwn(forms, name) ? forms[name] : undefined
    if (form === undefined)
      throw refused(
        option,
        `${option} is no option here; there are ${Object.keys(known).join(', ')}`,
      )
    // `retry: false` is none.
    if (typeof form === 'object' && value !== false) assertKnown(value, form as object, option)
  }
}

function refused(option: string, subject: string): Error {
  return new UsageError('OPTION_INVALID', { details: { option, subject } })
}
