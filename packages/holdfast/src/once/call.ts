import { type Duration, durationMs } from '../core/options/duration.ts'
import { notGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { defaultTerms, type Wait, type WaitTerms, waitTerms } from '../core/options/wait.ts'
import { assertRunOptions, type RunOptions, runOptions } from '../tx/run-options.ts'
import type { OnceNames } from './engine.ts'
import { fingerprintOf, keyText } from './names.ts'

/** @deprecated Say how long, or `'nowait'`. */
export type OldWait = boolean

/** Options of one call. */
export interface OnceOptions {
  /** What keys are unique within, and what a shard is chosen by. @defaultValue the key itself */
  readonly scope?: string
  /** How long the result is remembered: longer than anybody repeats the call. @defaultValue '30 days' */
  readonly keep?: Duration
  /**
   * What came with the key: text, bytes or plain data, which is what JSON can hold. Something else under the
   * same key is refused.
   */
  readonly payload?: unknown
  /**
   * How long to wait for a duplicate that is under way; `'nowait'` does not, and says so. `false` is the old
   * name of `'nowait'`, `true` that of the default, or of `'2 s'` where the default is not to wait.
   * @defaultValue '2 s', or what `createHoldfast` was given
   */
  readonly wait?: Wait | OldWait
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

/** What a call asks for, checked. */
export interface Call {
  readonly names: OnceNames
  readonly wait: WaitTerms
  readonly keepMs: number
}

/** @throws OPTION_INVALID, ONCE_KEY_INVALID */
export function callOf(key: string, options: OnceOptions, usual: WaitTerms): Call {
  const { scope = key, keep = '30 days', payload, wait } = options
  // A misspelt property, most likely: nothing would be compared, now and later.
  if (payload === undefined && 'payload' in options)
    throw notGiven('payload', 'text, bytes or plain data, and it is undefined: leave it out')
  return {
    names: {
      key: keyText(key, 'key'),
      scope: keyText(scope, 'scope'),
      fingerprint: payload === undefined ? undefined : fingerprintOf(payload),
    },
    wait: termsOf(wait, usual),
    keepMs: durationMs(keep, 'keep'),
  }
}

function termsOf(wait: OnceOptions['wait'], usual: WaitTerms): WaitTerms {
  if (wait === true) return usual.how === 'nowait' ? defaultTerms(undefined) : usual
  return waitTerms(wait === false ? 'nowait' : wait, usual)
}

/**
 * Checks options of `once` before there is a call: for whoever takes them in advance, as a decorator does.
 *
 * @throws OPTION_INVALID, ONCE_KEY_INVALID
 */
export function assertOnceOptions(options: (OnceOptions & RunOptions) | undefined): void {
  const known = optionsGiven(options, onceAloneOptions)
  callOf('key', known, defaultTerms(undefined))
  assertRunOptions(known)
}
