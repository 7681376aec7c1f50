import { type Duration, durationMs } from '../core/options/duration.ts'
import { momentText } from '../core/options/moment-text.ts'
import type { OperationOptions } from '../ledger/book.ts'
import { invalid } from '../ledger/calendar.ts'
import { type Amount, amountText, nameText } from '../ledger/operation.ts'

/** What becomes of the rest of a grant when it expires. */
export interface Rollover {
  /** At most this much of it lives on, as a grant of its own; the rest lapses. */
  readonly limit: Amount
  /** How long, from the moment the grant expires. It does not roll over a second time. */
  readonly for: Duration
}

/** How a grant can be spent, and until when. */
export interface GrantTerms {
  /**
   * Lower ones are spent first; then the one that expires earlier; then the one that came earlier.
   * A whole number from 0 to 32767. @defaultValue 50
   */
  readonly priority?: number
  /** When it can be spent. @defaultValue at once */
  readonly effectiveAt?: Date
  /** When its rest lapses. @defaultValue never */
  readonly expiresAt?: Date
  /** The same, counted on the server's clock from when it becomes effective. */
  readonly expiresIn?: Duration
  /** @defaultValue all of the rest lapses */
  readonly rollover?: Rollover
  /**
   * The features it can be spent on: by `charge`, or by what names one as its `feature`. It pays no debts, and nothing
   * of it can be transferred. @defaultValue anything
   */
  readonly onlyFor?: readonly string[]
}

/** Options of `grant`. */
export interface GrantOptions extends OperationOptions, GrantTerms {}

/** The terms of a grant as the database takes them; the same terms are always the same text. */
export function termsText(options: GrantTerms): string {
  const { priority = 50, effectiveAt, expiresAt, expiresIn, rollover, onlyFor } = options
  if (!Number.isInteger(priority) || priority < 0 || priority > 32_767) {
    throw invalid('priority', 'priority must be a whole number from 0 to 32767')
  }
  if (expiresAt !== undefined && expiresIn !== undefined) {
    throw invalid('expiresIn', 'a grant has either expiresAt or expiresIn')
  }
  if (expiresAt !== undefined && effectiveAt !== undefined && expiresAt <= effectiveAt) {
    throw invalid('expiresAt', 'expiresAt must be later than effectiveAt')
  }
  if (rollover !== undefined && expiresAt === undefined && expiresIn === undefined) {
    throw invalid('rollover', 'a grant that never expires cannot roll over')
  }
  return JSON.stringify({
    priority,
    effective_at: momentOf(effectiveAt, 'effectiveAt'),
    expires_at: momentOf(expiresAt, 'expiresAt'),
    expires_in_ms: expiresIn === undefined ? undefined : spanMs(expiresIn, 'expiresIn'),
    rollover_limit: rollover && amountText(rollover.limit, 'rollover.limit'),
    rollover_for: rollover && `${spanMs(rollover.for, 'rollover.for')} milliseconds`,
    only_for: onlyFor === undefined ? undefined : featuresOf(onlyFor),
  })
}

/** Each once, in order. */
function featuresOf(given: readonly string[]): readonly string[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw invalid('onlyFor', 'onlyFor must be a list of at least one feature')
  }
  return [...new Set(given.map((feature) => nameText(feature, 'feature')))].toSorted()
}

/** Beyond this a date in the future of a date could not be stored. */
const longestMs = 1_000 * 365 * 86_400_000

function spanMs(duration: Duration, option: string): number {
  const ms = durationMs(duration, option)
  if (ms <= longestMs) return ms
  throw invalid(option, `${option} must be at most 1000 years`)
}

function momentOf(moment: Date | undefined, option: string): string | undefined {
  return moment === undefined ? undefined : momentText(moment, option)
}
