import { holdfastError } from '../core/errors.ts'
import { type OperationOptions, operationOptions, single } from './book.ts'
import {
  type Amount,
  flags,
  type Key,
  kinds,
  type Line,
  type Operation,
  signedAmountText,
} from './operation.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** Options of `adjust`. */
export interface AdjustOptions extends OperationOptions {
  /** Why; kept with the movement. */
  readonly reason: string
}

export const adjustOptions: KnownOptions<AdjustOptions> = {
  ...operationOptions,
  reason: 'checked',
}

/**
 * A correction, up or down, as an operation. It is booked whatever the balance: the only movement
 * that is, so that an audit can hold every debit and hold to its bound.
 */
export function adjustment(
  line: Pick<Line, 'book' | 'allowance' | 'unit' | 'zone'>,
  key: Key,
  amount: Amount,
  given: AdjustOptions,
): Operation {
  const { reason, note, ...options } = optionsGiven(given, adjustOptions)
  if (typeof reason !== 'string' || reason.trim() === '') {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'reason', subject: 'an adjustment needs a reason' },
    })
  }
  return single(
    { ...line, kind: kinds.adjust, amount: signedAmountText(amount), flags: flags.unchecked },
    key,
    { ...options, note: { ...note, reason } },
  )
}
