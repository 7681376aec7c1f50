import { isHoldfastError } from 'holdfast'
import { hf } from './database.ts'
import { imageUpload } from './locks.ts'
import { capBytes, type NewImage, QuotaExceeded } from './quota.ts'

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

// #region errors
/** What the client is told when an upload did not simply succeed. */
export async function answerError(error: unknown, image: NewImage): Promise<Answer> {
  if (error instanceof QuotaExceeded) {
    return { status: 413, body: { error: 'over-quota', usedBytes: error.usedBytes, capBytes } }
  }
  if (isHoldfastError(error, 'COMMIT_UNKNOWN')) return settleUnknown(image)
  // LOCK_TIMEOUT above all: nothing was saved, and the same request may succeed in a moment.
  if (isHoldfastError(error) && error.retryable) return tryAgain
  throw error
}

/**
 * The connection broke during COMMIT. Whoever gets the same lock next knows that the first try is
 * over, one way or the other, so what is read under it is final. Connections of the pool may have
 * broken with it, hence the retry. If that fails as well, the outcome stays unknown: an error.
 */
async function settleUnknown({ id, userId }: NewImage): Promise<Answer> {
  const saved = await hf.guard(
    imageUpload(userId),
    (tx) => tx.userImage.findUnique({ where: { id } }),
    { durable: true, retry: { attempts: 10 } },
  )
  return saved === null ? tryAgain : { status: 201, body: { id } }
}

const tryAgain: Answer = {
  status: 503,
  headers: { 'retry-after': '1' },
  body: { error: 'busy' },
}
// #endregion
