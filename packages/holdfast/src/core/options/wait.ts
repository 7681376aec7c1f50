import { type Duration, durationMs, plainMs } from './duration.ts'
import { holdfastError } from '../errors.ts'

/**
 * How long a call waits for somebody else, counted from the call: a duration (`'2 s'`, or milliseconds),
 * `'nowait'`, or `'inherit'`: as long as the transaction's own lock_timeout allows.
 */
export type Wait = Duration | 'nowait' | 'inherit'

/** What every wait is limited to unless a call or `createHoldfast` says otherwise. */
export const defaultWait: Wait = '2 s'

/** A wait, checked. */
export interface WaitTerms {
  /** `skip`: leave out what others have. */
  readonly how: 'wait' | 'nowait' | 'skip'
  /** `undefined`: only the settings of the transaction and the client's own timer count; 0: not at all. */
  readonly limitMs: number | undefined
  /**
   * A shorter lock_timeout of the transaction ends the wait first. So for a default, which must not
   * lengthen what the transaction allows; a limit that the call itself gives stands in its place.
   */
  readonly yields: boolean
}

/** How long the error of a wait may be held back to name who was in the way. */
export const lookupLimitMs = 100

/** Which words a call understands besides durations. */
export type WaitWord = 'nowait' | 'inherit' | 'skip' | 'block'

/** PostgreSQL's timeouts are 32-bit, and ours may get a little on top: what is longer is as good as this. */
const mostMs = 2_000_000_000
const longestMs = 2 ** 31 - 1

export const nowait: WaitTerms = { how: 'nowait', limitMs: undefined, yields: false }
const inherit: WaitTerms = { how: 'wait', limitMs: undefined, yields: true }

/**
 * The wait as a call asked for it; `fallback` if it did not. `0` does not wait. `block` is the old name of
 * `inherit`.
 *
 * @throws OPTION_INVALID
 */
export function waitTerms(
  given: Wait | 'skip' | 'block' | undefined,
  fallback: WaitTerms,
  words: readonly WaitWord[] = ['nowait', 'inherit'],
  option = 'wait',
): WaitTerms {
  if (given === undefined) return fallback
  if (plainMs(given) === 0) return nowait
  if (words.includes(given as WaitWord)) {
    if (given === 'nowait') return nowait
    return given === 'skip' ? skipping(fallback) : inherit
  }
  return { how: 'wait', limitMs: limitOf(given, words, option), yields: false }
}

/** For what cannot be left out, a lock on the whole table, the limit that calls have otherwise. */
function skipping({ how, limitMs, yields }: WaitTerms): WaitTerms {
  return { how: 'skip', limitMs: how === 'nowait' ? 0 : limitMs, yields }
}

/** A wait that holds where calls do not say otherwise. @throws OPTION_INVALID */
export function defaultTerms(
  given: Wait | 'block' | undefined,
  words?: readonly WaitWord[],
  option?: string,
): WaitTerms {
  return {
    ...waitTerms(given === undefined ? defaultWait : given, inherit, words, option),
    yields: true,
  }
}

/** The same wait, but no longer than this. */
export function atMost(terms: WaitTerms, ms: number | undefined): WaitTerms {
  if (ms === undefined || terms.how !== 'wait') return terms
  const leastMs = Math.min(terms.limitMs ?? Infinity, ms)
  // Without an end, which the server knows as no limit and not as a number.
  if (leastMs === Infinity) return terms
  return { ...terms, limitMs: Math.max(1, Math.ceil(leastMs)) }
}

function limitOf(given: unknown, words: readonly WaitWord[], option: string): number {
  try {
    const ms = durationMs(given as Duration, option)
    const isWhole = typeof given !== 'number' || Number.isInteger(given)
    if (ms <= longestMs && isWhole) return Math.min(ms, mostMs)
  } catch {
    // Below, with the words that are understood here.
  }
  const named = words.filter((word) => word !== 'block').map((word) => `'${word}'`)
  const subject = `${option} must be whole milliseconds or a text like '2 s', at most 24 days${named.map((word) => `, or ${word}`).join('')}`
  throw holdfastError('OPTION_INVALID', { details: { option, subject } })
}
