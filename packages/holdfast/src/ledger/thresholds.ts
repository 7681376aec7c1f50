import { holdfastError } from '../core/errors.ts'
import type { Amount } from './operation.ts'
import type { Balance } from './verdict.ts'

/** A movement of `follow`, or whatever tells before and after. */
interface Step<A> extends Balance<A> {
  readonly before: Balance<A>
}

/** Shares are told apart to a millionth. */
const parts = 1_000_000

/**
 * Which of these shares of its limit an account reached with this movement: 0.8 when 80 % are used up or put aside. Each is
 * reached once, until something comes back or the limit is raised. Not for rates.
 *
 * @example
 * await hf.ledger.follow({ name: 'warnings', book: 'calls' }, async (tx, movements) => {
 *   for (const movement of movements) {
 *     for (const share of reachedShares(movement, [0.8, 1])) {
 *       await mails.enqueue(tx, { payload: { key: movement.key, share } })
 *     }
 *   }
 * })
 * @throws OPTION_INVALID
 */
export function reachedShares<A extends Amount>(
  movement: Step<A>,
  shares: readonly number[],
): readonly number[] {
  return shares.filter((share) => {
    if (!(share > 0 && share <= 1_000)) {
      throw holdfastError('OPTION_INVALID', {
        details: { option: 'shares', subject: 'a share must be above 0 and at most 1000' },
      })
    }
    const wanted = BigInt(Math.round(share * parts))
    const isReached = ({ credited, debited, held, allowance }: Balance<A>): boolean => {
      const used = BigInt(debited) + BigInt(held) - BigInt(credited)
      return used > 0n && used * BigInt(parts) >= wanted * BigInt(allowance)
    }
    return isReached(movement) && !isReached(movement.before)
  })
}

/**
 * Below which of these amounts what is available fell with this movement.
 *
 * @example
 * for (const left of fellBelow(movement, [100, 10])) {
 *   await mails.enqueue(tx, { payload: { key: movement.key, left } })
 * }
 */
export function fellBelow<A extends Amount>(
  movement: Step<A>,
  amounts: readonly Amount[],
): readonly Amount[] {
  return amounts.filter(
    (amount) => movement.available < amount && movement.before.available >= amount,
  )
}
