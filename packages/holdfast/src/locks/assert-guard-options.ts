import { optionsGiven } from '../core/options/known-options.ts'
import { defaultTerms } from '../core/options/wait.ts'
import { assertRunOptions } from '../tx/run-options.ts'
import { acquireTerms } from './acquire-options.ts'
import { type GuardOptions, guardOptions } from './locks.ts'

/**
 * Checks options of `guard` before there is a call: for whoever takes them in advance, as a decorator does.
 *
 * @throws OPTION_INVALID
 */
export function assertGuardOptions(options: GuardOptions | undefined): void {
  const known = optionsGiven(options, guardOptions)
  acquireTerms(defaultTerms(undefined), known)
  assertRunOptions(known)
}
