import type { Transaction } from './driver.ts'
import { endedInside } from './errors/ended-inside.ts'

/** The statements of a savepoint, and what they say. */
export interface Savepoint {
  readonly open: string
  readonly undo: readonly string[]
  readonly keep: string
  /** There is no such savepoint, although nothing of ours has ended it. */
  isMissing(error: unknown): boolean
  /** It is gone with the whole transaction, which whoever sees this error of the body finds out. */
  saysSo(error: unknown): boolean
}

/**
 * Runs the body in a savepoint: kept if it resolves, undone if it rejects.
 *
 * @throws TX_ENDED_INSIDE if the body has ended the savepoint, or the transaction around it
 */
export async function keptOrUndone<Tx, T>(
  transaction: Transaction<Tx>,
  { open, undo, keep, isMissing, saysSo }: Savepoint,
  body: (inner: Transaction<Tx>) => Promise<T>,
): Promise<T> {
  await transaction.command(open)
  let result: T
  try {
    result = await body(transaction)
  } catch (error) {
    try {
      for (const text of undo) await transaction.command(text)
    } catch (failure) {
      if (isMissing(failure) && !saysSo(error)) throw endedInside('unknown', error)
    }
    throw error
  }
  try {
    await transaction.command(keep)
  } catch (failure) {
    throw isMissing(failure) ? endedInside('unknown', failure) : failure
  }
  return result
}
