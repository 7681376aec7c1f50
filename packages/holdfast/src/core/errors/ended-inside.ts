import { holdfastError } from '../errors.ts'

/** What became of a transaction that somebody else than its owner has ended. */
export type Ended = 'committed' | 'rolled back' | 'unknown'

const savedSoFar: Readonly<Record<Ended, string>> = {
  committed: 'what the body wrote before its own COMMIT is saved',
  'rolled back': 'what the body wrote before its own ROLLBACK is gone',
  unknown: 'what the body wrote may be saved or not',
}

/** The transaction is over, and its owner did not end it. */
export function endedInside(ended: Ended, cause?: unknown): Error {
  return holdfastError('TX_ENDED_INSIDE', { details: { subject: savedSoFar[ended], ended }, cause })
}
